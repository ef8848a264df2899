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
    overview: 'Overview',
    accounts: 'Accounts',
    authority: 'Authority',
    waiting: 'Waiting orders',
    lanes: 'Callback lanes',
    audit: 'Audit',
    find: 'Find',
    doctor: 'Doctor',
    people: 'Operators',
  },
  zh: {
    orders: '订单',
    certificates: '证书',
    callbacks: '回调',
    revocations: '吊销',
    cloudKeys: '云端密钥',
    account: '账户',
    overview: '概览',
    accounts: '账户',
    authority: '颁发机构',
    waiting: '等待中的订单',
    lanes: '回调通道',
    audit: '审计',
    find: '查找',
    doctor: '诊断',
    people: '运维人员',
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
  { path: 'overview', who: 'operator', rail: 'overview', load: () => import('../pages/operator/overview.ts') },
  { path: 'accounts', who: 'operator', rail: 'accounts', load: () => import('../pages/operator/accounts.ts') },
  { path: 'accounts/:id', who: 'operator', load: () => import('../pages/operator/account.ts') },
  { path: 'authority', who: 'operator', rail: 'authority', load: () => import('../pages/operator/authority.ts') },
  { path: 'waiting', who: 'operator', rail: 'waiting', load: () => import('../pages/operator/waiting.ts') },
  { path: 'lanes', who: 'operator', rail: 'lanes', load: () => import('../pages/operator/lanes.ts') },
  { path: 'lanes/:id', who: 'operator', load: () => import('../pages/operator/lane.ts') },
  { path: 'audit', who: 'operator', rail: 'audit', load: () => import('../pages/operator/audit.ts') },
  { path: 'find', who: 'operator', rail: 'find', load: () => import('../pages/operator/find.ts') },
  { path: 'story/:id', who: 'operator', load: () => import('../pages/operator/story.ts') },
  { path: 'doctor', who: 'operator', rail: 'doctor', load: () => import('../pages/operator/doctor.ts') },
  { path: 'people', who: 'operator', rail: 'people', load: () => import('../pages/operator/people.ts') },
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
