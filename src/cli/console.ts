// reseal console login | sessions | end, reseal operator create | list | disable
import { OPERATOR_ROLES, type Operator, type SessionOwner } from '../domain/console/session.ts';
import { EXIT, Problem } from '../kernel/problem.ts';
import type { Command } from './command.ts';
import { oneOf, table, time } from './values.ts';

const operatorView = ({ name, role, createdAt, disabledAt }: Operator) => ({
  ...{ name, role, created_at: time(createdAt), disabled_at: disabledAt === null ? null : time(disabledAt) },
});

export const operatorCreate: Command = {
  store: 'creates',
  about: 'create an operator of the console',
  examples: ['operator create alice --role act', 'operator create auditor --role view'],
  positionals: ['NAME'],
  options: { role: { type: 'string', about: 'view: reads only; act: may change things, too (required)' } },
  async run({ positionals: [name = ''], options }, { withConsole }) {
    const role = oneOf('role', options.role, OPERATOR_ROLES, undefined);
    if (!role)
      throw new Problem(EXIT.usage, 'the role is missing', `Use --role ${OPERATOR_ROLES.join(' or --role ')}.`);
    const operator = await withConsole(({ operators }) => operators.create(name, role));
    return {
      json: { operator: operatorView(operator) },
      text: `Created operator ${operator.name} (${role}).\nNext, a link to sign in: reseal console login --operator ${operator.name}`,
    };
  },
};

export const operatorList: Command = {
  store: 'existing',
  about: 'list the operators of the console',
  examples: ['operator list'],
  positionals: [],
  options: {},
  async run(_given, { withConsole }) {
    const operators = await withConsole((console) => console.operators.list());
    const rows = operators.map((one) => [
      one.name,
      one.role,
      time(one.createdAt),
      one.disabledAt === null ? 'active' : 'disabled',
    ]);
    return {
      json: { operators: operators.map(operatorView) },
      text: rows.length === 0 ? NO_OPERATOR : table(['NAME', 'ROLE', 'CREATED', 'STATE'], rows),
    };
  },
};

export const operatorDisable: Command = {
  store: 'existing',
  about: 'disable an operator for good; ends their sessions',
  examples: ['operator disable alice'],
  positionals: ['NAME'],
  options: {},
  async run({ positionals: [name = ''] }, { withConsole }) {
    const operator = await withConsole(({ operators }) => operators.disable(name));
    return {
      json: { operator: operatorView(operator) },
      text: `Disabled operator ${name}. Their sessions have ended.`,
    };
  },
};

export const consoleLogin: Command = {
  store: 'existing',
  about: 'print a link that signs an operator in to the console, once',
  examples: ['console login', 'console login --operator alice'],
  positionals: [],
  options: { operator: { type: 'string', about: 'who signs in (default: the only operator there is)' } },
  async run({ options }, { withConsole, isTerminal }) {
    // A journal or a file would keep the link, and others would read it.
    if (!isTerminal) {
      throw new Problem(
        EXIT.refused,
        'the link is printed to a terminal only',
        'Run the command in a terminal, without a pipe: in a container with "docker exec -it".',
      );
    }
    const { url, expiresAt, name } = await withConsole(async ({ operators, consoleUrl }) => {
      const chosen = options.operator?.toString() ?? onlyOne(await operators.list());
      const link = await operators.makeLink(chosen);
      return { url: `${await consoleUrl()}#login=${link.token.reveal()}`, expiresAt: link.expiresAt, name: chosen };
    });
    return {
      json: { url, operator: name, expires_at: time(expiresAt) },
      text: `${url}\n\nSigns ${name} in once, until ${time(expiresAt)}. Keep it to yourself.`,
    };
  },
};

const NO_OPERATOR = 'There are no operators yet. Create one: reseal operator create NAME --role act';

function onlyOne(operators: readonly Operator[]): string {
  const [first, ...others] = operators.filter(({ disabledAt }) => disabledAt === null).map(({ name }) => name);
  if (first !== undefined && others.length === 0) return first;
  if (first === undefined) {
    throw new Problem(
      EXIT.refused,
      'there is no operator to sign in',
      'Create one: reseal operator create NAME --role act',
    );
  }
  throw new Problem(
    EXIT.usage,
    'there are several operators',
    `Say which: --operator ${[first, ...others].join(' | ')}`,
  );
}

export const consoleSessions: Command = {
  store: 'existing',
  about: 'list who is signed in to the console, newest first',
  examples: ['console sessions'],
  positionals: [],
  options: {},
  async run(_given, { withConsole }) {
    const sessions = await withConsole(({ operators }) => operators.listSessions());
    const views = sessions.map(({ id, owner, createdAt, lastSeenAt, expiresAt, network }) => ({
      ...{ id, of: nameOf(owner), network },
      ...{ created_at: time(createdAt), last_seen_at: time(lastSeenAt), expires_at: time(expiresAt) },
    }));
    return {
      json: { sessions: views },
      text:
        views.length === 0
          ? 'No one is signed in.'
          : table(
              ['SESSION', 'OF', 'NETWORK', 'LAST SEEN', 'EXPIRES'],
              views.map((one) => [one.id, one.of, one.network, one.last_seen_at, one.expires_at]),
            ),
    };
  },
};

const nameOf = (owner: SessionOwner): string =>
  'keyId' in owner ? `key ${owner.keyId}` : `operator ${owner.operatorName}`;

export const consoleEnd: Command = {
  store: 'existing',
  about: 'end a session of the console',
  examples: ['console end SESSION'],
  positionals: ['SESSION'],
  options: {},
  async run({ positionals: [id = ''] }, { withConsole }) {
    await withConsole(({ operators }) => operators.endSession(id));
    return { json: { ended: id }, text: `Ended session ${id}.` };
  },
};
