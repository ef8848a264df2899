// What customers and operators learn of DNS: what is cached, whose fault a failure is, what was found instead, and whether the
// resolvers validate. The resolver is scripted, so that answers have TTLs, extended errors and aliases.
import assert from 'node:assert/strict';
import { after } from 'node:test';
import packet from 'dns-packet';
import { readConfig } from '../../../src/config/config.ts';
import type { Challenge } from '../../../src/domain/validation/challenge.ts';
import { fetchFile } from '../../../src/usecases/validation/fetch-file.ts';
import { serve } from '../../../src/wiring/serve.ts';
import { newUsedFolder } from '../../support/app.ts';
import { rule } from '../../support/contract.ts';
import { SECOND, startDomainApp } from '../../support/domain-app.ts';
import { body, newOrder, type PlacedOrder, reissue, show } from '../../support/orders.ts';
import { type Datagram, nameOf, response, ScriptedNameServer } from '../../support/scripted-name-server.ts';

type Reply = (query: Buffer) => Buffer;
const replies = new Map<string, Reply>();
const NOTHING: Reply = (query) => response(query, [], { flags: packet.RECURSION_AVAILABLE | 3 });
const SERVFAIL = packet.RECURSION_AVAILABLE | 2;
const answering = ({ query, send }: Datagram) => {
  const [question] = packet.decode(query).questions ?? [];
  send((replies.get(`${question?.name.toLowerCase()} ${question?.type}`) ?? NOTHING)(query));
};
const UP = { udp: answering };
const DOWN = {
  udp: ({ query, send }: Datagram) => send(response(query, [], { flags: packet.RECURSION_AVAILABLE | 5 })),
  isDown: true,
};
function takeDown(): Disposable {
  resolver.script = DOWN;
  return {
    [Symbol.dispose]() {
      resolver.script = UP;
    },
  };
}
const resolver = await ScriptedNameServer.start(UP);
const world = await startDomainApp({ RESEAL_DNS_SERVERS: resolver.address });
after(async () => {
  await world[Symbol.asyncDispose]();
  await resolver[Symbol.asyncDispose]();
});
const { app, place, complete, check, entries, newDomain, workerChecks } = world;

const txt =
  (ttl: number, ...texts: readonly string[]): Reply =>
  (query) =>
    response(
      query,
      texts.map((data) => ({ type: 'TXT', name: nameOf(query), ttl, data })),
    );
/** No record, with the SOA record that says for how long this may be cached. */
const absent =
  (ttl: number): Reply =>
  (query) => {
    const data = { mname: 'ns.test', rname: 'who.test', serial: 1, refresh: 9, retry: 9, expire: 9, minimum: ttl };
    return response(query, [], { authorities: [{ type: 'SOA', name: 'test', ttl: 9_999, data }] });
  };
const servfail =
  (code?: number, text = ''): Reply =>
  (query) => {
    const data = Buffer.concat([Uint8Array.of((code ?? 0) >> 8, (code ?? 0) & 255), Buffer.from(text)]);
    const options = code === undefined ? [] : [{ code: 15, data }];
    const opt = { ...{ type: 'OPT', name: '.', udpPayloadSize: 1_232, extendedRcode: 0, ednsVersion: 0 }, options };
    return response(query, [], {
      flags: SERVFAIL,
      additionals: [{ ...opt, flags: 0, flag_do: false } as unknown as packet.Answer],
    });
  };
const inFuture = (seconds: number): string => new Date(app.now() + seconds * SECOND).toISOString();
const seen = async (order: PlacedOrder) => Object.values(await check(order))[0]!;
const checkIn = (order: PlacedOrder, locale: string) =>
  app.call('GET', `/openapi/v3/orders/${order.id}/dcv-check`, {
    key: order.key,
    headers: { 'Accept-Language': locale },
  });

rule('dcv 20', 'tell in `cached_until` until when the resolver may repeat its answer', async () => {
  const domain = newDomain();
  const order = await place([domain]);
  const [entry] = await entries(order);
  assert.ok(entry);
  replies.set(`${entry.auth_path} TXT`, absent(40));
  const { result, cached_until } = await seen(order);
  assert.deepEqual([result, cached_until], ['no_record', inFuture(40)]);
  await complete(order);
  const { dcv_val, dcv_next_check_at } = await show(app, order);
  assert.equal(dcv_val[0].problem.cached_until, inFuture(40));
  assert.equal(dcv_next_check_at, inFuture(41), 'no check that could not tell anything new');
  // Caching beyond two minutes is not waited for, and an answer that is not cached has no time.
  replies.set(`${entry.auth_path} TXT`, absent(9_000));
  await complete(order);
  assert.equal((await show(app, order)).dcv_next_check_at, inFuture(120));
  replies.set(`${entry.auth_path} TXT`, NOTHING);
  assert.equal((await seen(order)).cached_until, null);
  replies.set(`${entry.auth_path} TXT`, txt(5, entry.auth_val));
  app.advance(60 * SECOND);
  const published = await seen(order);
  assert.deepEqual([published.result, published.cached_until], ['ok', inFuture(5)]);
  await workerChecks(order);
  assert.equal((await show(app, order)).status, 'issued');
});

rule('persist 20', 'authorizes until the answers that resolvers have cached end', async () => {
  const domain = newDomain();
  const order = await place([domain], { dcv_method: 'dns-persist' });
  const [entry] = await entries(order);
  replies.set(`${entry?.auth_path} TXT`, txt(30, entry?.auth_val ?? ''));
  const { result, cached_until } = await seen(order);
  assert.deepEqual([result, cached_until], ['ok', inFuture(30)]);
  // Nothing beside the resolver keeps it: what the resolver answers next is what counts.
  await complete(order);
  replies.set(`${entry?.auth_path} TXT`, absent(5));
  await reissue(app, order, body({ common_name: domain }, { dcv_method: 'dns-persist' }));
  assert.equal(await world.outcome(order), 'reissuing no_record');
});

rule('dcv 21', 'anything else that fails in DNS is `dns_failure`', async () => {
  const order = await place([newDomain()]);
  const [entry] = await entries(order);
  const failing = async (reply: Reply) => {
    replies.set(`${entry?.auth_path} TXT`, reply);
    const { result, message } = await seen(order);
    assert.equal(result, 'dns_failure');
    return message;
  };
  assert.match(await failing(servfail()), /name servers fail, or DNSSEC does not verify\. Check both/);
  assert.match(
    await failing(servfail(22, 'at delegation test.')),
    /Check both.*EDE 22 \(No Reachable Authority\): at d/,
  );
  const bogus = await failing(servfail(7, 'for \u202eDNSKEY\ntest.'));
  assert.match(
    bogus,
    /: DNSSEC does not verify\. Correct .* says: EDE 7 \(Signature Expired\): for \?+DNSKEY\?test\.\.$/,
  );
  const { body: chinese } = await checkIn(order, 'zh-CN');
  assert.match(chinese.data.checks[0].message, /DNSSEC 验证失败.*EDE 7/);
});

rule('dcv 21', 'is `resolver_unreachable`, and there is nothing to do for the applicant', async () => {
  const orders = [await place([newDomain()]), await place([newDomain()], { dcv_method: 'file' })];
  using _down = takeDown();
  for (const order of orders) {
    const { result, message } = await seen(order);
    assert.deepEqual([result, /nothing for you to do/.test(message)], ['resolver_unreachable', true], message);
  }
  const { body: chinese } = await checkIn(orders[0]!, 'zh-CN');
  assert.match(chinese.data.checks[0].message, /您无需处理/);
  assert.equal(chinese.data.checks[0].caa.result, 'resolver_unreachable');
});

rule('ops 49', '`GET /readyz` stays 200 while resolvers cannot be reached', async () => {
  const gauge = async () => /^reseal_resolvers_unreachable (\d+)$/m.exec(await app.app.metrics.text())?.[1];
  const told = () => app.lines.flatMap(({ event }) => (event.startsWith('resolver_') ? [event] : []));
  const order = await place([newDomain()]);
  assert.equal((await seen(order)).result, 'no_record');
  const before = told().length;
  {
    using _down = takeDown();
    assert.equal((await seen(order)).result, 'resolver_unreachable');
    const { status, body: ready } = await app.call('GET', '/readyz');
    assert.deepEqual([status, ready.data.resolvers], [200, { unreachable: [resolver.address] }]);
    assert.deepEqual([await gauge(), told().slice(before)], ['1', ['resolver_unreachable']]);
  }
  assert.equal((await seen(order)).result, 'no_record');
  assert.deepEqual(app.issuance.resolverDetail(), {});
  assert.deepEqual([await gauge(), told().slice(before)], ['0', ['resolver_unreachable', 'resolver_reachable']]);
});

rule('dcv 22', 'quotes up to three of the records', async () => {
  const order = await place([newDomain()]);
  const [entry] = await entries(order);
  const path = entry?.auth_path ?? '';
  replies.set(`${path} TXT`, txt(5, 'v=spf1 -all', 'x'.repeat(100), '\u001b[2Jé', 'fourth'));
  const { result, message } = await seen(order);
  assert.equal(result, 'wrong_value');
  assert.match(message, /Found: "v=spf1 -all", "x{60}…", "\?\[2J\?\?" and 1 more\.$/);
  // A CNAME may lead into a zone that only our resolver can see.
  replies.set(`${path} TXT`, (query) =>
    response(query, [
      { type: 'CNAME', name: nameOf(query), data: 'secret.internal' },
      { type: 'TXT', name: 'secret.internal', data: 'password' },
    ]),
  );
  const aliased = (await seen(order)).message;
  assert.match(aliased, /\(by CNAME secret\.internal\) has the value of this order\.$/);
  assert.doesNotMatch(aliased, /password/);
});

rule('dcv 22', 'and nothing of a file from a private address', async () => {
  const challenge: Challenge = { ...{ name: 'a.test', method: 'file', domain: 'a.test' }, path: '/f', value: 'wanted' };
  const signal = new AbortController().signal;
  const messageOf = async (isPrivate: boolean) => {
    const answer = { kind: 'answered', status: 200, headers: {}, body: Buffer.from('<html>\nx') } as const;
    const observation = { stage: 'response', phases: {}, tls: null } as const;
    const result = await fetchFile(
      { tlsPort: 443, filePort: 80, filePolicy: () => ({ allow: [], deny: [], totalMs: 1 }) },
      { callOut: async () => ({ ...answer, isPrivate, seen: observation }), dns: { isReachable: async () => true } },
      challenge,
      { accountId: 'account', signal, product: { trust: 'private', validationNetworks: [] } },
    );
    return result.isOk ? '' : result.reason.en;
  };
  assert.match(await messageOf(false), /Found: "<html>", "x"\.$/);
  assert.match(await messageOf(true), /the value of this order\.$/);
});

/** CAA of the name is that of another, by a CNAME. */
const forbidding =
  (target: string): Reply =>
  (query) =>
    response(query, [
      { type: 'CNAME', name: nameOf(query), data: target },
      { type: 'CAA', name: target, data: { flags: 0, tag: 'issue', value: 'other-ca.example' } },
    ]);

rule('dcv 23', 'names the target of the CNAME', async () => {
  const domain = newDomain();
  const order = await place([domain]);
  replies.set(`${domain} CAA`, forbidding('cdn.example.net'));
  const { caa } = await seen(order);
  assert.equal(caa.result, 'caa_forbidden');
  assert.match(
    caa.message,
    new RegExp(`^CAA at ${domain} \\(by CNAME cdn\\.example\\.net\\): this authority is not among`),
  );
});

rule('reissue 48', 'lists in `caa_problems` the names that it does not permit', async () => {
  const [domain, other] = [newDomain(), newDomain()];
  const order = await newOrder(app, { commonName: domain });
  const dryRun = async (dns_names: readonly string[]) => {
    const path = `/openapi/v3/orders/${order.id}/reissue?dry_run=true`;
    const {
      status,
      body: answer,
      text,
    } = await app.call('POST', path, {
      ...{ key: order.key, json: body({ common_name: domain, dns_names }) },
    });
    assert.equal(status, 200, text);
    return answer.data.plan.caa_problems;
  };
  assert.deepEqual(await dryRun([]), []);
  replies.set(`${domain} CAA`, forbidding('cdn.example.net'));
  replies.set(`${other} CAA`, servfail(6));
  const problems = await dryRun([other]);
  assert.deepEqual(
    problems.map((one: { domain: string; result: string }) => [one.domain, one.result]),
    [
      [domain, 'caa_forbidden'],
      [other, 'dns_failure'],
    ],
  );
  assert.match(problems[0].message, /by CNAME cdn/);
  assert.match(problems[1].message, /DNSSEC Bogus/);
  assert.equal((await show(app, order)).status, 'issued', 'nothing waits');
});

rule('ops 50', '`reseal serve` warns at its start, without waiting', async () => {
  const { promise: warned, resolve } = Promise.withResolvers<string>();
  const { config } = readConfig({
    ...{ RESEAL_DATA_DIR: await newUsedFolder(), RESEAL_PORT: '0', RESEAL_WORKERS: '0', RESEAL_DRAIN_SECONDS: '0' },
    ...{ RESEAL_DNS_SERVERS: resolver.address, RESEAL_DNSSEC_TEST_NAME: 'broken.test' },
  });
  const running = await serve(config, {
    now: Date.now,
    log: (line) => line.event === 'warning' && line.text.startsWith('resolver') && resolve(line.text),
  });
  const text = await warned;
  await running.stop();
  assert.match(text, new RegExp(`^resolver ${resolver.address} does not validate DNSSEC: .* broken\\.test`));
});
