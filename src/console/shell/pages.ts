// The pages as a table: address, who may see it, its place in the rail. Modules are loaded when a page is first shown.
import type { FunctionComponent } from 'preact';
import { texts } from './language.ts';
import type { Session } from './session.ts';

export interface PageProps {
  /** What stands for the segments that begin with a colon, in their order. */
  readonly parameters: readonly string[];
  readonly query: URLSearchParams;
}
export interface PageModule {
  readonly Page: FunctionComponent<PageProps>;
}

interface PageRow {
  readonly path: string;
  readonly who: Session['kind'];
  /** Shown in the rail under this name. */
  readonly rail?: RailKey;
  readonly load: () => Promise<PageModule>;
}

const names = {
  en: {
    orders: 'Orders',
    certificates: 'Certificates',
    callbacks: 'Callbacks',
    revocations: 'Revocations',
    cloudKeys: 'Cloud keys',
    account: 'Account',
  },
  zh: {
    orders: '订单',
    certificates: '证书',
    callbacks: '回调',
    revocations: '吊销',
    cloudKeys: '云端密钥',
    account: '账户',
  },
} as const;
type RailKey = keyof (typeof names)['en'];
export const railText = texts<RailKey>(names);

/** The first of each kind is where a session begins. */
export const PAGES: readonly PageRow[] = [
  { path: 'orders', who: 'account', rail: 'orders', load: () => import('../pages/issuance/orders.ts') },
  { path: 'orders/new', who: 'account', load: () => import('../pages/issuance/new-order.ts') },
  { path: 'orders/:id', who: 'account', load: () => import('../pages/issuance/order.ts') },
  { path: 'orders/:id/reissue', who: 'account', load: () => import('../pages/issuance/reissue.ts') },
  {
    path: 'certificates',
    who: 'account',
    rail: 'certificates',
    load: () => import('../pages/issuance/certificates.ts'),
  },
  { path: 'certificates/:id', who: 'account', load: () => import('../pages/issuance/certificate.ts') },
  { path: 'callbacks', who: 'account', rail: 'callbacks', load: () => import('../pages/callbacks/callbacks.ts') },
  { path: 'callbacks/deliveries', who: 'account', load: () => import('../pages/callbacks/deliveries.ts') },
  { path: 'callbacks/deliveries/:id', who: 'account', load: () => import('../pages/callbacks/delivery.ts') },
  {
    path: 'revocations',
    who: 'account',
    rail: 'revocations',
    load: () => import('../pages/revocation/revocations.ts'),
  },
  { path: 'cloud-keys', who: 'account', rail: 'cloudKeys', load: () => import('../pages/cloud-keys/cloud-keys.ts') },
  { path: 'account', who: 'account', rail: 'account', load: () => import('../pages/access/account.ts') },
];

export interface Match {
  readonly row: PageRow;
  readonly parameters: readonly string[];
}

export function matchPage(path: readonly string[], who: Session['kind']): Match | undefined {
  for (const row of PAGES) {
    const segments = row.path.split('/');
    if (row.who !== who || segments.length !== path.length) continue;
    if (!segments.every((segment, index) => segment.startsWith(':') || segment === path[index])) continue;
    return { row, parameters: path.filter((_, index) => segments[index]?.startsWith(':')) };
  }
  return undefined;
}
