// Writes dist/: src/ without its types. A package needs it because Node does not strip types below node_modules. Positions
// stay the same, so that stack traces name the lines of the sources. Also writes what else a package has: the locked versions,
// and an SBOM of them. Run by npm pack; a checkout runs src/ itself.
import { execFileSync } from 'node:child_process';
import { cpSync, globSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { stripTypeScriptTypes } from 'node:module';
import { dirname, join } from 'node:path';

const ROOT = new URL('../', import.meta.url).pathname;
const SRC = join(ROOT, 'src');
const DIST = join(ROOT, 'dist');
/** Imports, and URLs of worker scripts. */
const RELATIVE = /(['"`])(\.{1,2}\/[^'"`\n]+)\.ts\1/g;

rmSync(DIST, { recursive: true, force: true });
for (const file of globSync('**/*.*', { cwd: SRC, exclude: ['**/tsconfig.json'] })) {
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

/** CycloneDX, from the lock file: every package of every platform with its digest. */
const SBOM = ['sbom', '--package-lock-only', '--sbom-format=cyclonedx', '--sbom-type=application'];
const npm = process.env.npm_execpath;
const sbom: Sbom = JSON.parse(
  npm
    ? execFileSync(process.execPath, [npm, ...SBOM], { cwd: ROOT, encoding: 'utf8' })
    : execFileSync('npm', SBOM, { cwd: ROOT, encoding: 'utf8' }),
);
// With --omit=dev npm also leaves out what run time and development share.
const { packages } = JSON.parse(readFileSync(join(ROOT, 'package-lock.json'), 'utf8'));
const shipped = new Set(
  Object.entries<{ version: string; dev?: true }>(packages)
    .filter(([, { dev }]) => !dev)
    .map(([path, { version }]) => `${path.replace(/^.*node_modules\//, '') || 'reseal'}@${version}`),
);
const isShipped = (ref: string) => shipped.has(ref);
const { serialNumber: _, metadata, ...rest } = sbom;
const written = {
  ...rest,
  // npm names the folder. Without time and serial number the same sources give the same package.
  metadata: { ...metadata, timestamp: undefined, component: { ...metadata.component, name: 'reseal' } },
  components: sbom.components.filter((one) => isShipped(one['bom-ref'])),
  dependencies: sbom.dependencies
    .filter(({ ref }) => isShipped(ref))
    .map(({ ref, dependsOn }) => ({ ref, dependsOn: dependsOn.filter(isShipped) })),
};
writeFileSync(join(ROOT, 'sbom.cdx.json'), `${JSON.stringify(written, null, 2)}\n`);

interface Sbom {
  readonly serialNumber: string;
  readonly metadata: Readonly<Record<string, unknown>> & { readonly component: Readonly<Record<string, unknown>> };
  readonly components: readonly { readonly 'bom-ref': string }[];
  readonly dependencies: readonly { readonly ref: string; readonly dependsOn: readonly string[] }[];
}
