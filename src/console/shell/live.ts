// Server-sent notices of what changed in the account. A notice carries no data: pages read again what they show.
import { effect, signal } from '@preact/signals';
import { useEffect, useRef } from 'preact/hooks';
import { session } from './session.ts';

export interface Notice {
  readonly type: string;
  readonly order_id?: string;
  readonly certificate_id?: string;
  readonly event_id?: string;
}

const notice = signal<Notice | undefined>(undefined);
let source: EventSource | undefined;
let timer: ReturnType<typeof setInterval> | undefined;

/** Without a stream, as in a third window of the same session, a page that is looked at reads again in this time. */
const POLL_MS = 20_000;

/** Call once. The browser reconnects by itself; the stream ends with the session. */
export function followChanges(): void {
  effect(() => {
    const isAccount = session.value?.kind === 'account';
    source?.close();
    source = undefined;
    clearInterval(timer);
    if (!isAccount) return;
    source = new EventSource(new URL('api/account/events', document.baseURI));
    source.onmessage = ({ data }) => {
      notice.value = JSON.parse(data);
    };
    source.onerror = () => {
      if (source?.readyState !== EventSource.CLOSED) return;
      clearInterval(timer);
      timer = setInterval(() => {
        if (document.visibilityState === 'visible') notice.value = { type: 'poll' };
      }, POLL_MS);
    };
  });
}

/** Notices come in bursts; a page reads again once for all of a burst. */
const BURST_MS = 150;

/** Calls `onChange` after notices that `concern` the page. */
export function useChanges(onChange: () => void, concerns: (notice: Notice) => boolean = () => true): void {
  const latest = useRef({ onChange, concerns });
  latest.current = { onChange, concerns };
  useEffect(() => {
    let isFirst = true;
    let timer: ReturnType<typeof setTimeout> | undefined;
    const end = effect(() => {
      const told = notice.value;
      if (!isFirst && told && latest.current.concerns(told)) {
        timer ??= setTimeout(() => {
          timer = undefined;
          latest.current.onChange();
        }, BURST_MS);
      }
      isFirst = false;
    });
    return () => {
      end();
      clearTimeout(timer);
    };
  }, []);
}
