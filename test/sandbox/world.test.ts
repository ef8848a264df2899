// DNS records and files of the sandbox: how arguments are parsed, what a real resolver sees, and how a file edited by
// other means is handled.
import assert from 'node:assert/strict';
import { Resolver } from 'node:dns/promises';
import { mkdirSync, renameSync, rmSync, statSync, utimesSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import fc from 'fast-check';
import { lockFolder } from '../../src/adapters/store/engine/folder-lock.ts';
import { Problem } from '../../src/kernel/problem.ts';
import { startDnsServer } from '../../src/sandbox/dns-server.ts';
import { readWorld, viewWorld, WORLD_FILE, worldCommands } from '../../src/sandbox/world.ts';
import { parseWorld, printWorld, readRecords, setFile, setRecords } from '../../src/sandbox/world-records.ts';
import { readName, readReply, readText, readUrl } from '../../src/sandbox/world-values.ts';
import { newFolder } from '../support/app.ts';

const refusal = (work: () => unknown): string => {
  try {
    work();
  } catch (error) {
    assert.ok(error instanceof Problem, String(error));
    assert.ok(error.remedy.length > 5);
    return error.message;
  }
  return 'accepted';
};

const NAMES: readonly (readonly [given: string, name: string | RegExp])[] = [
  ['example.com', 'example.com'],
  ['EXAMPLE.com.', 'example.com'],
  ['_validation-persist.WWW.example.com', '_validation-persist.www.example.com'],
  ['localhost', 'localhost'],
  ['__proto__', '__proto__'],
  ['xn--mnchen-3ya.de', 'xn--mnchen-3ya.de'],
  [`${'a'.repeat(63)}.test`, `${'a'.repeat(63)}.test`],
  ['*.example.com', /not a name of records/],
  ['münchen.de', /as DNS knows it/],
  ['\u212Aelvin.test', /as DNS knows it/],
  ['', /not a DNS name/],
  ['.', /not a DNS name/],
  ['a..b', /not a DNS name/],
  ['example.com..', /not a DNS name/],
  ['a b.test', /not a DNS name/],
  ['a/b.test', /not a DNS name/],
  ['192.0.2.1', /not a DNS name/],
  ['[::1]', /not a DNS name/],
  ['a\n.test', /"a\?\.test" is not/],
  [`${'a'.repeat(64)}.test`, /not a DNS name/],
  [`${'a.'.repeat(126)}test`, /not a DNS name/],
];
for (const [given, expected] of NAMES) {
  test(`name ${JSON.stringify(given.slice(0, 40))}`, () => {
    if (typeof expected === 'string') assert.equal(readName(given), expected);
    else
      assert.match(
        refusal(() => readName(given)),
        expected,
      );
  });
}

const URLS: readonly (readonly [given: string, url: string | RegExp])[] = [
  ['http://www.example.com/.well-known/x.txt', 'http://www.example.com/.well-known/x.txt'],
  ['HTTP://WWW.Example.com./A', 'http://www.example.com/A'],
  ['http://www.example.com:80/a', 'http://www.example.com/a'],
  ['http://www.example.com', 'http://www.example.com/'],
  ['http://www.example.com/a/../b c', 'http://www.example.com/b%20c'],
  ['http://münchen.de/', 'http://xn--mnchen-3ya.de/'],
  ['https://www.example.com/', /not an http/],
  ['www.example.com/a', /not an http/],
  ['http:www.example.com/a', /not an http/],
  ['', /not an http/],
  ['http://www.example.com:8080/', /more than a name and a path/],
  ['http://u:p@www.example.com/', /more than a name and a path/],
  ['http://www.example.com/?q=1', /more than a name and a path/],
  ['http://www.example.com/#x', /more than a name and a path/],
  ['http://127.0.0.1/', /not a DNS name/],
  ['http://0x7f000001/', /not a DNS name/],
  ['http://[::1]/', /not a DNS name/],
  ['http://*.example.com/', /not a name of records/],
  [`http://a.test/${'a'.repeat(2_100)}`, /not an http/],
];
for (const [given, expected] of URLS) {
  test(`address ${JSON.stringify(given.slice(0, 40))}`, () => {
    if (typeof expected === 'string') assert.equal(readUrl(given).url, expected);
    else
      assert.match(
        refusal(() => readUrl(given)),
        expected,
      );
  });
}

const REFUSED: readonly (readonly [type: string, values: readonly string[], message: RegExp])[] = [
  ['MX', ['x'], /"MX" is not a type/],
  ['constructor', ['x'], /not a type/],
  ['A', [], /has no value/],
  ['A', ['::1'], /"::1" is not a value of A records/],
  ['A', ['127.1'], /not a value/],
  ['AAAA', ['127.0.0.1'], /not a value/],
  ['A', ['servfail', '192.0.2.1'], /an answer of its own/],
  ['TXT', ['text', 'nodata'], /an answer of its own/],
  ['CNAME', ['a.test', 'b.test'], /one other name/],
  ['CNAME', ['a..b'], /not a DNS name/],
  ['CAA', ['0', 'issue', 'ca.test'], /"0" is not a value of CAA/],
  ['CAA', ['0 issue'], /not a value/],
  ['CAA', ['0 issue '], /not a value/],
  ['CAA', ['256 issue "ca.test"'], /not a value/],
  ['CAA', ['-1 issue "ca.test"'], /not a value/],
  ['CAA', ['0 is_sue "ca.test"'], /not a value/],
  ['CAA', ['0 issue "ca.test'], /not a value/],
  ['CAA', ['0 issue ca.test"'], /not a value/],
  ['CAA', ['0 issue "ca"test"'], /not a value/],
  ['CAA', ['0 issue "ca.test" x'], /not a value/],
  ['TXT', ['x'.repeat(60_000)], /more than 60000 bytes/],
];
for (const [type, values, message] of REFUSED) {
  test(`no ${type} record: ${JSON.stringify(values).slice(0, 40)}`, () => {
    assert.match(
      refusal(() => readRecords('a.test', type, values)),
      message,
    );
  });
}

test('every fault keyword is accepted, in lower case and on its own', () => {
  for (const fault of ['servfail', 'nxdomain', 'nodata', 'refused', 'silence']) {
    assert.equal(readReply('a.test', 'TXT', [fault]), fault);
  }
  assert.ok(Array.isArray(readReply('a.test', 'TXT', ['SERVFAIL'])));
});

test('a text has at most 64 KiB, counted in bytes', () => {
  assert.equal(readText('x'.repeat(65_536)).length, 65_536);
  assert.match(
    refusal(() => readText('ü'.repeat(32_769))),
    /more than 65536 bytes/,
  );
});

/** Starts a name server on the world of a folder. */
async function served(folder: string) {
  const warnings: string[] = [];
  const view = viewWorld(folder, (text) => warnings.push(text));
  const server = await startDnsServer({ host: '127.0.0.1', port: 0, replies: view.replies });
  // Default time-outs: nothing here tests silence, and the machine may be busy.
  const resolver = new Resolver();
  resolver.setServers([`127.0.0.1:${server.port}`]);
  const code = (asked: Promise<unknown>) => asked.then(JSON.stringify, (error) => error.code);
  return { ...worldCommands(folder, lockFolder), view, server, resolver, code, warnings };
}

test('a resolver reads the records as set, including long TXT values and CAA', async () => {
  const { setDns, server, resolver } = await served(newFolder());
  await using _ = server;
  const long = `ca.example; accounturi=https://ca.example/${'x'.repeat(600)}`;
  await setDns('_validation-persist.a.test', 'txt', [long, 'second', '', '"in quotes"', 'ü']);
  const texts = await resolver.resolveTxt('_validation-persist.a.test');
  assert.deepEqual(
    texts[0]?.map((part) => part.length),
    [255, 255, 132],
  );
  assert.deepEqual(
    texts.map((parts) => Buffer.from(parts.join(''), 'latin1').toString()),
    [long, 'second', '', '"in quotes"', 'ü'],
  );
  await setDns('a.test', 'CAA', [
    '0 issue "ca.example; accounturi=https://ca.example/1"',
    '128  IssueWild\t";"',
    '0 iodef mailto:a@a.test',
    '0 issue "a\\"b\\\\c"',
  ]);
  assert.deepEqual(await resolver.resolveCaa('a.test'), [
    { critical: 0, issue: 'ca.example; accounturi=https://ca.example/1', type: 'CAA' },
    { critical: 128, IssueWild: ';', type: 'CAA' },
    { critical: 0, iodef: 'mailto:a@a.test', type: 'CAA' },
    { critical: 0, issue: 'a"b\\c', type: 'CAA' },
  ]);
});

test('records set by the user override those of the sandbox, type by type; unknown names stay unknown', async () => {
  const { setDns, clearDns, server, resolver, code } = await served(newFolder());
  await using _ = server;
  server.set('own.test', 'A', ['192.0.2.1']);
  await setDns('own.test', 'CAA', ['servfail']);
  assert.deepEqual(await resolver.resolve4('own.test'), ['192.0.2.1']);
  assert.equal(await code(resolver.resolveCaa('own.test')), 'ESERVFAIL');
  await setDns('own.test', 'A', ['192.0.2.2', '192.0.2.3']);
  assert.deepEqual(await resolver.resolve4('own.test'), ['192.0.2.2', '192.0.2.3']);
  assert.equal(await code(resolver.resolveTxt('own.test')), 'ENODATA');
  await setDns('own.test', 'TXT', ['x']);
  assert.equal(await clearDns('own.test', 'txt'), 1);
  assert.equal(await clearDns('OWN.test', undefined), 2);
  assert.deepEqual(await resolver.resolve4('own.test'), ['192.0.2.1']);
  for (const ask of [resolver.resolveCaa('x.test'), resolver.resolve4('x.test'), resolver.resolveTxt('test')]) {
    assert.equal(await code(ask), 'ENOTFOUND');
  }
  await setDns('www.own.test', 'CNAME', ['own.test.']);
  assert.deepEqual(await resolver.resolve4('www.own.test'), ['192.0.2.1']);
});

test('a host with files resolves to 127.0.0.1, unless its records say otherwise', async () => {
  const { setDns, setHttp, clearHttp, server, resolver, code } = await served(newFolder());
  await using _ = server;
  await setHttp('http://web.test/a', 'x');
  assert.deepEqual(await resolver.resolve4('web.test'), ['127.0.0.1']);
  assert.equal(await code(resolver.resolve6('web.test')), 'ENODATA');
  await setDns('web.test', 'AAAA', ['::1']);
  assert.deepEqual(await resolver.resolve6('web.test'), ['::1']);
  assert.deepEqual(await resolver.resolve4('web.test'), ['127.0.0.1']);
  await setDns('web.test', 'A', ['nxdomain']);
  assert.equal(await code(resolver.resolve4('web.test')), 'ENOTFOUND');
  await setHttp('http://alias.test/a', 'x');
  await setDns('alias.test', 'CNAME', ['elsewhere.test']);
  await setDns('elsewhere.test', 'A', ['192.0.2.9']);
  assert.deepEqual(await resolver.resolve4('alias.test'), ['192.0.2.9']);
  await setDns('alias.test', 'CNAME', ['servfail']);
  assert.equal(await code(resolver.resolve4('alias.test')), 'ESERVFAIL');
  await setHttp('http://gone.test/a', 'x');
  assert.equal(await clearHttp('http://gone.test/a'), 1);
  assert.equal(await code(resolver.resolve4('gone.test')), 'ENOTFOUND');
});

const BROKEN: Readonly<Record<string, string>> = {
  'not JSON': '{"dns":[',
  'a list': '[]',
  nothing: '',
  'a field too many': '{"dns":[],"http":[],"more":1}',
  'a field too few': '{"dns":[]}',
  'no list of records': '{"dns":{},"http":[]}',
  'values that are none': '{"dns":[{"name":"a.test","type":"A","values":["x"]}],"http":[]}',
  'a value that is a number': '{"dns":[{"name":"a.test","type":"A","values":[1]}],"http":[]}',
  'a name that is none': '{"dns":[{"name":"a..b","type":"A","values":["127.0.0.1"]}],"http":[]}',
  'a name and type twice':
    '{"dns":[{"name":"a.test","type":"TXT","values":["x"]},{"name":"A.test","type":"txt","values":["y"]}],"http":[]}',
  'an address twice': '{"dns":[],"http":[{"url":"http://a.test/","text":""},{"url":"http://a.test","text":""}]}',
  'an address with a port': '{"dns":[],"http":[{"url":"http://a.test:81/","text":""}]}',
  'a text that is too long': `{"dns":[],"http":[{"url":"http://a.test/","text":"${'x'.repeat(65_537)}"}]}`,
  'a line that looks like one of the log': '{"dns":\nlistening',
  'more than 4 MiB': '{"dns":[],"http":[]}'.padEnd(4 * 1024 * 1024 + 1),
  'too many names': `{"dns":[${Array.from({ length: 1_001 }, (_, n) => `{"name":"n${n}.test","type":"TXT","values":["x"]}`)}],"http":[]}`,
};

test('a corrupt file is reported once, the last valid records stay, and no command overwrites it', async () => {
  const folder = newFolder();
  const file = join(folder, WORLD_FILE);
  const { setDns, setHttp, list, view, warnings } = await served(folder).then(async (world) => {
    await world.server.close();
    return world;
  });
  await setDns('kept.test', 'TXT', ['good']);
  await setHttp('http://kept.test/', 'good');
  assert.ok(view.replies('kept.test')?.has('TXT'));
  for (const [title, text] of Object.entries(BROKEN)) {
    warnings.length = 0;
    writeFileSync(file, text);
    for (let times = 0; times < 2; times += 1) {
      assert.ok(view.replies('kept.test')?.has('TXT'), title);
      assert.equal(view.textAt('http://kept.test/'), 'good', title);
    }
    assert.equal(warnings.length, 1, title);
    assert.match(warnings[0]!, /sandbox-world\.json cannot be used: [^\n]{5,220}; the records before it stay$/, title);
    await assert.rejects(setDns('new.test', 'A', ['192.0.2.1']), /cannot be used/, title);
    assert.throws(list, { exitCode: 3 }, title);
    assert.equal(statSync(file).size, Buffer.byteLength(text), title);
  }
  rmSync(file);
  mkdirSync(file);
  assert.equal(view.textAt('http://kept.test/'), 'good');
  assert.match(warnings.at(-1)!, /it is not a file/);
  rmSync(file, { recursive: true });
  assert.equal(view.textAt('http://kept.test/'), undefined);
  assert.equal(view.replies('kept.test'), undefined);
});

test('only the owner can read the file, whatever the umask', async () => {
  const folder = newFolder();
  const before = process.umask(0);
  try {
    writeFileSync(join(folder, `${WORLD_FILE}.draft`), 'left behind');
    await worldCommands(folder, lockFolder).setHttp('http://a.test/', 'x');
  } finally {
    process.umask(before);
  }
  assert.equal(statSync(join(folder, WORLD_FILE)).mode & 0o777, 0o600);
});

test('a change is detected even if size and mtime are unchanged', async () => {
  const folder = newFolder();
  const [file, draft] = [join(folder, WORLD_FILE), join(folder, 'mine')];
  const view = viewWorld(folder, assert.fail);
  for (const text of ['one', 'two', 'six']) {
    writeFileSync(draft, printWorld({ dns: [], http: [{ url: 'http://a.test/', text }] }));
    utimesSync(draft, 1_000, 1_000);
    renameSync(draft, file);
    assert.equal(view.textAt('http://a.test/'), text);
  }
});

test('the total size of the file is bounded', () => {
  let world = parseWorld('{"dns":[],"http":[]}');
  for (let n = 0; n < 999; n += 1) world = setRecords(world, { name: `n${n}.test`, type: 'TXT', values: ['x'] });
  world = setFile(world, { url: 'http://last.test/', text: '' });
  assert.match(
    refusal(() => setFile(world, { url: 'http://more.test/', text: '' })),
    /at most 1000 names/,
  );
  assert.match(
    refusal(() => setRecords(world, { name: 'more.test', type: 'A', values: ['nodata'] })),
    /1000 names/,
  );
  for (const url of ['http://last.test/2', 'http://n1.test/']) world = setFile(world, { url, text: '' });
  const fill = (n: number) => setFile(world, { url: `http://last.test/big${n}`, text: 'x'.repeat(65_536) });
  for (let n = 0; n < 60; n += 1) world = fill(n);
  assert.deepEqual(parseWorld(printWorld(world)), world);
  for (let n = 60; n < 64; n += 1) world = fill(n);
  assert.match(
    refusal(() => printWorld(world)),
    /at most 4194304 bytes/,
  );
});

test('any value that is set is read back unchanged', () => {
  const folder = newFolder();
  const text = fc.string({ unit: 'grapheme', maxLength: 300 }).filter((one) => !/^[a-z]+$/.test(one));
  fc.assert(
    fc.property(fc.array(text, { minLength: 1, maxLength: 4 }), text, (values, body) => {
      const records = readRecords('a.test', 'TXT', values);
      const file = { url: 'http://a.test/', text: body };
      writeFileSync(join(folder, WORLD_FILE), printWorld({ dns: [records], http: [file] }));
      assert.deepEqual(readWorld(folder), { dns: [{ name: 'a.test', type: 'TXT', values }], http: [file] });
    }),
    { numRuns: 200 },
  );
});
