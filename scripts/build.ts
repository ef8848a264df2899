// Writes dist/: src/ without its types. A package needs it because Node does not strip types below node_modules. Positions
// stay the same, so that stack traces name the lines of the sources. Run by npm pack; a checkout runs src/ itself.
import { cpSync, globSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { stripTypeScriptTypes } from 'node:module';
import { dirname, join } from 'node:path';

const ROOT = new URL('../', import.meta.url).pathname;
const SRC = join(ROOT, 'src');
const DIST = join(ROOT, 'dist');
/** Imports, and URLs of worker scripts. */
const RELATIVE = /(['"`])(\.{1,2}\/[^'"`\n]+)\.ts\1/g;

rmSync(DIST, { recursive: true, force: true });
for (const file of globSync('**/*.*', { cwd: SRC })) {
  const to = join(DIST, file);
  mkdirSync(dirname(to), { recursive: true });
  if (!file.endsWith('.ts')) cpSync(join(SRC, file), to);
  else {
    const text = stripTypeScriptTypes(readFileSync(join(SRC, file), 'utf8'), { mode: 'strip' });
    writeFileSync(to.replace(/\.ts$/, '.js'), text.replace(RELATIVE, '$1$2.js$1'));
  }
}
// Locks the versions of all dependencies for whoever installs the package, as npm ci does in a checkout.
cpSync(join(ROOT, 'package-lock.json'), join(ROOT, 'npm-shrinkwrap.json'));
