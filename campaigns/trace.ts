// Reads an strace of the service on SQLite: requests in, WAL written, WAL synced, responses out, in kernel order. Responses
// are judged by that order alone. The only assumption about the service is that one thread does all of it, so that the
// order of lines is the order of events.
import { createReadStream } from 'node:fs';
import { createInterface } from 'node:readline';

/** The system calls to trace, and how much of each buffer strace must show. */
export const TRACED_CALLS = 'trace=fsync,fdatasync,read,recvfrom,recvmsg,write,writev,sendto,sendmsg,pwrite64,pwritev';
export const SHOWN_BYTES = 512;

export interface TraceReport {
  answers: number;
  /** WAL syncs between the first request and the last answer. */
  syncs: number;
  /** Answers sent without a sync since their request arrived. */
  early: number;
  /** Answers sent while the WAL had unsynced bytes. */
  unsynced: number;
}

// `write(27<socket:[23007]>, "HTTP/1.1 200 …`: call, descriptor with its target, and the rest.
const CALL = /^(\w+)\((\d+<[^>]*>)(.*)$/;
const LINE = /^(\d+)\s+(.*)$/;
const RESUMED = /^<\.\.\. \w+ resumed>(.*)$/;
const UNFINISHED = ' <unfinished ...>';
const READS = /^(read|recvfrom|recvmsg)$/;
const SYNCS = /^(fsync|fdatasync)$/;

/** Judges the answers to the given request ids; ignores everything else. */
export async function judgeAnswers(file: string, requestIds: ReadonlySet<string>): Promise<TraceReport> {
  const report: TraceReport = { answers: 0, syncs: 0, early: 0, unsynced: 0 };
  const lastRequest = new Map<string, number>();
  let lastSync = -1;
  let lastWalWrite = -1;
  // Count syncs only between the first of these requests and the last of these answers.
  let firstRequest: number | undefined;
  const syncs: number[] = [];
  let syncsAtLastAnswer = 0;

  let moment = 0;
  for await (const { call, descriptor, rest } of callsIn(file)) {
    moment += 1;
    const isWal = descriptor.endsWith('-wal>');
    if (SYNCS.test(call)) {
      if (!isWal || !rest.endsWith('= 0')) continue;
      lastSync = moment;
      syncs.push(moment);
    } else if (READS.test(call)) {
      if (rest.includes('"PUT /')) lastRequest.set(descriptor, moment);
    } else if (isWal) {
      lastWalWrite = moment;
    } else {
      const [, requestId] = /HTTP\/1\.1 200 .*?x-request-id: ([0-9a-z]+)/.exec(rest) ?? [];
      if (requestId === undefined || !requestIds.has(requestId)) continue;
      const requested = lastRequest.get(descriptor) ?? moment;
      firstRequest = Math.min(firstRequest ?? requested, requested);
      report.answers += 1;
      if (lastSync < requested) report.early += 1;
      if (lastWalWrite > lastSync) report.unsynced += 1;
      syncsAtLastAnswer = syncs.length;
    }
  }
  report.syncs = syncs.slice(0, syncsAtLastAnswer).filter((at) => at > (firstRequest ?? 0)).length;
  return report;
}

interface Call {
  readonly call: string;
  readonly descriptor: string;
  readonly rest: string;
}

/** Calls in order of completion. Joins calls that strace prints in two pieces. */
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
