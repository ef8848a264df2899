// Does the store open, is it ours, does it keep what it acknowledges, and does its clock agree with ours?

import { type Finding, Problem } from '../../problem.ts';
import type { OpenStore } from '../store/store.ts';

// Signatures, validity periods and leases are measured in seconds; a few of them do no harm.
const MAX_CLOCK_OFFSET_MS = 2_000;

/** `open` migrates: a store that a newer version made, or that was sealed with another key, is a Problem. */
export async function checkStore(open: () => Promise<OpenStore>, now: () => number): Promise<Finding[]> {
  let store: OpenStore;
  try {
    store = await open();
  } catch (error) {
    if (!(error instanceof Problem)) throw error;
    return [{ check: 'store', state: 'problem', text: error.message, remedy: error.remedy }];
  }
  try {
    // The previous probe is read before the new one hides it.
    const lastSeen = Number((await store.settings.get('last_write_probe')) ?? 0);
    const gaps = await store.durabilityGaps();
    await store.probeWrite();
    return [storeFinding(store.engine.name, gaps), clockFinding(await store.clockOffsetMs(), lastSeen, now())];
  } finally {
    await store.close();
  }
}

function storeFinding(engine: string, gaps: readonly string[]): Finding {
  const check = 'store';
  if (gaps.length === 0) return { check, state: 'ok', text: `${engine}, migrated, a write was made durable` };
  return {
    check,
    state: 'problem',
    text: `${engine} may lose what it acknowledged: ${gaps.join(', ')}`,
    remedy: 'Turn these settings on again in the database.',
  };
}

function clockFinding(offsetMs: number, lastSeen: number, now: number): Finding {
  const check = 'clock';
  const remedy = 'Let this machine set its clock by NTP.';
  if (Math.abs(offsetMs) > MAX_CLOCK_OFFSET_MS) {
    return { check, state: 'problem', text: `${Math.round(offsetMs / 1000)} s away from the database’s clock`, remedy };
  }
  if (lastSeen > now + MAX_CLOCK_OFFSET_MS) {
    return {
      check,
      state: 'problem',
      text: `it went back: the store was last used at ${new Date(lastSeen).toISOString()}`,
      remedy,
    };
  }
  return { check, state: 'ok', text: new Date(now).toISOString() };
}
