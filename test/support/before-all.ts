// Before the first test file: makes the issuers that every app of every test starts with. Two of their keys are RSA,
// which takes seconds; made once, they are copied. A test file that is run by itself makes its own.
import { ISSUERS_FOLDER, newFolder, TestApp } from './app.ts';
import { NAME_SERVER, nameServer } from './name-server.ts';

export async function globalSetup(): Promise<void> {
  process.env[NAME_SERVER] = await nameServer();
  const app = new TestApp(newFolder());
  await app.start({});
  await app.stop();
  process.env[ISSUERS_FOLDER] = app.folder;
}
