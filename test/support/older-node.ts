import { execFileSync } from 'node:child_process';

/** A Node too old to run the service, which the launcher must replace. Undefined if the host has none. */
export const OLDER_NODE = ['/usr/bin/node', '/usr/local/bin/node'].find((path) => {
  try {
    return Number.parseInt(execFileSync(path, ['-p', 'process.versions.node'], { encoding: 'utf8' }), 10) < 24;
  } catch {
    return false;
  }
});
