// Reads what strace saw of a service over SQLite: requests in, log written, log synced, answers out, in the order of
// the kernel. It judges answers by that order alone and knows nothing of how the service is built, except that one
// thread does all of it, so that the order of the lines is the order of events.
import { createReadStream } from 'node:fs';
import { createInterface } from 'node:readline';

/** The calls to ask strace for, and how much of what is read and written must be shown. */
export const TRACED_CALLS = 'trace=fsync,fdatasync,read,recvfrom,recvmsg,write,writev,sendto,sendmsg,pwrite64,pwritev';
export const SHOWN_BYTES = 512;

export interface Findings {
  answers: number;
  /** Times the log was synced between the first request and the last answer. */
  syncs: number;
  /** Answers sent though nothing was synced since their request came in. */
  early: number;
  /** Answers sent while bytes of the log were written and not synced. */
  unsynced: number;
}

// `write(27<socket:[23007]>, "HTTP/1.1 200 …`: name, descriptor with what it stands for, and the rest.
const CALL = /^(\w+)\((\d+<[^>]*>)(.*)$/;
const LINE = /^(\d+)\s+(.*)$/;
const RESUMED = /^<\.\.\. \w+ resumed>(.*)$/;
const UNFINISHED = ' <unfinished ...>';
const READS = /^(read|recvfrom|recvmsg)$/;
const SYNCS = /^(fsync|fdatasync)$/;

/** Judges the answers whose request ids are given; whatever else the service did is passed over. */
export async function judgeAnswers(file: string, requestIds: ReadonlySet<string>): Promise<Findings> {
  const findings: Findings = { answers: 0, syncs: 0, early: 0, unsynced: 0 };
  const lastRequest = new Map<string, number>();
  let lastSync = -1;
  let lastLogWrite = -1;
  // Syncs count from the first request of ours on, and only up to the last answer of ours.
  let firstRequest: number | undefined;
  const syncs: number[] = [];
  let syncsAtLastAnswer = 0;

  let moment = 0;
  for await (const { call, descriptor, rest } of callsIn(file)) {
    moment += 1;
    const isLog = descriptor.endsWith('-wal>');
    if (SYNCS.test(call)) {
      if (!isLog || !rest.endsWith('= 0')) continue;
      lastSync = moment;
      syncs.push(moment);
    } else if (READS.test(call)) {
      if (rest.includes('"PUT /')) lastRequest.set(descriptor, moment);
    } else if (isLog) {
      lastLogWrite = moment;
    } else {
      const [, requestId] = /HTTP\/1\.1 200 .*?x-request-id: ([0-9a-z]+)/.exec(rest) ?? [];
      if (requestId === undefined || !requestIds.has(requestId)) continue;
      const requested = lastRequest.get(descriptor) ?? moment;
      firstRequest = Math.min(firstRequest ?? requested, requested);
      findings.answers += 1;
      if (lastSync < requested) findings.early += 1;
      if (lastLogWrite > lastSync) findings.unsynced += 1;
      syncsAtLastAnswer = syncs.length;
    }
  }
  findings.syncs = syncs.slice(0, syncsAtLastAnswer).filter((at) => at > (firstRequest ?? 0)).length;
  return findings;
}

interface Call {
  readonly call: string;
  readonly descriptor: string;
  readonly rest: string;
}

/** Calls in the order of their completion: one that strace shows in two pieces is put together. */
async function* callsIn(file: string): AsyncGenerator<Call> {
  const begun = new Map<string, string>();
  for await (const line of createInterface({ input: createReadStream(file), crlfDelay: Number.POSITIVE_INFINITY })) {
    const [, thread, text] = LINE.exec(line) ?? [];
    if (thread === undefined || text === undefined) continue;
    if (text.endsWith(UNFINISHED)) {
      begun.set(thread, text.slice(0, -UNFINISHED.length));
      continue;
    }
    const [, end] = RESUMED.exec(text) ?? [];
    const whole = end === undefined ? text : `${begun.get(thread) ?? ''}${end}`;
    const [, call, descriptor, rest] = CALL.exec(whole) ?? [];
    if (call !== undefined && descriptor !== undefined && rest !== undefined) yield { call, descriptor, rest };
  }
}
