// What a page reads from the service: loaded when the page or its inputs change, abandoned when it is left.
import { useCallback, useEffect, useRef, useState } from 'preact/hooks';

export interface Resource<T> {
  /** The last data read; kept while it is read again, so that the page does not flicker. */
  readonly data: T | undefined;
  readonly error: Error | undefined;
  readonly isLoading: boolean;
  readonly reload: () => void;
}

/** `inputs` is what `load` depends on, compared by JSON. Another `revision` reads again, and shows the old data meanwhile. */
export function useResource<T>(
  load: (signal: AbortSignal) => Promise<T>,
  inputs: readonly unknown[],
  revision: unknown = 0,
): Resource<T> {
  const [state, setState] = useState<{ data?: T | undefined; error?: Error | undefined; isLoading: boolean }>({
    isLoading: true,
  });
  const [round, setRound] = useState(0);
  const latest = useRef(load);
  latest.current = load;
  const key = JSON.stringify(inputs);
  const lastKey = useRef(key);
  useEffect(() => {
    const abandoned = new AbortController();
    const isOther = lastKey.current !== key;
    lastKey.current = key;
    setState((before) => ({ data: isOther ? undefined : before.data, isLoading: true }));
    latest.current(abandoned.signal).then(
      (data) => !abandoned.signal.aborted && setState({ data, isLoading: false }),
      (error: Error) => !abandoned.signal.aborted && setState((before) => ({ ...before, error, isLoading: false })),
    );
    return () => abandoned.abort();
  }, [key, round, revision]);
  const reload = useCallback(() => setRound((before) => before + 1), []);
  return { data: state.data, error: state.error, isLoading: state.isLoading, reload };
}

export interface Action<Arguments extends readonly unknown[]> {
  readonly run: (...given: Arguments) => Promise<boolean>;
  readonly error: Error | undefined;
  readonly isRunning: boolean;
  readonly reset: () => void;
}

/** Something that a button does. While it runs it cannot be started again; `run` resolves to whether it succeeded. */
export function useAction<Arguments extends readonly unknown[]>(
  act: (...given: Arguments) => Promise<void>,
): Action<Arguments> {
  const [error, setError] = useState<Error | undefined>();
  const [isRunning, setRunning] = useState(false);
  const running = useRef(false);
  const run = async (...given: Arguments): Promise<boolean> => {
    if (running.current) return false;
    running.current = true;
    setRunning(true);
    setError(undefined);
    try {
      await act(...given);
      return true;
    } catch (caught) {
      setError(caught instanceof Error ? caught : new Error(String(caught)));
      return false;
    } finally {
      running.current = false;
      setRunning(false);
    }
  };
  return { run, error, isRunning, reset: () => setError(undefined) };
}
