// The console's entry: reads the session, then shows the sign-in page or the pages.
import { effect } from '@preact/signals';
import { h, render } from 'preact';
import { useEffect, useState } from 'preact/hooks';
import { Problem, signedOut } from './shell/api.ts';
import type { View } from './shell/html.ts';
import { languageTag } from './shell/language.ts';
import { Layout } from './shell/layout.ts';
import { followChanges } from './shell/live.ts';
import { problem } from './shell/parts.ts';
import { hasLink, readSession, redeemLink, session } from './shell/session.ts';
import { SignIn } from './shell/sign-in.ts';

function App(): View | null {
  const [error, setError] = useState<Error | undefined>();
  const [linkError, setLinkError] = useState<Error | undefined>();
  const start = () => {
    setError(undefined);
    setLinkError(undefined);
    redeemLink()
      .catch((refused) => {
        if (!(refused instanceof Problem)) throw refused;
        setLinkError(refused);
      })
      .then(readSession)
      .catch(setError);
  };
  useEffect(() => {
    start();
    // A link that is pasted into an open console changes the fragment only: the page is not loaded again.
    const onLink = () => hasLink() && start();
    addEventListener('hashchange', onLink);
    return () => removeEventListener('hashchange', onLink);
  }, []);
  if (error) return problem(error, start);
  if (session.value === undefined) return null;
  if (session.value === null || signedOut.value) return h(SignIn, { linkError });
  return h(Layout, { session: session.value });
}

effect(() => {
  document.documentElement.lang = languageTag();
});
followChanges();
const root = document.getElementById('app');
if (root) {
  root.replaceChildren();
  render(h(App, {}), root);
}
