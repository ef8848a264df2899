// Server-sent notices of what changed in the account. A notice carries no data: pages read again what they show.
import { effect, signal } from '@preact/signals';
import { useEffect } from 'preact/hooks';
import { session } from './session.ts';

export interface Notice {
  readonly type: string;
  readonly order_id?: string;
  readonly certificate_id?: string;
  readonly event_id?: string;
}

const notice = signal<Notice | undefined>(undefined);
let source: EventSource | undefined;

/** Call once. The browser reconnects by itself; the stream ends with the session. */
export function followChanges(): void {
  effect(() => {
    const isAccount = session.value?.kind === 'account';
    source?.close();
    source = undefined;
    if (!isAccount) return;
    source = new EventSource(new URL('api/account/events', document.baseURI));
    source.onmessage = ({ data }) => {
      notice.value = JSON.parse(data);
    };
  });
}

/** Calls `onChange` after each notice that `concerns` the page. */
export function useChanges(onChange: () => void, concerns: (notice: Notice) => boolean = () => true): void {
  useEffect(() => {
    let isFirst = true;
    return effect(() => {
      const latest = notice.value;
      if (!isFirst && latest && concerns(latest)) onChange();
      isFirst = false;
    });
  }, []);
}
