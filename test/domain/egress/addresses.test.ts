import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { isIP } from 'node:net';
import { test } from 'node:test';
import fc from 'fast-check';
import { isLocalName, isPublicAddress, judgeAddress } from '../../../src/domain/egress/address-verdict.ts';
import { type Address, parseAddress, parseAddressRule } from '../../../src/domain/egress/addresses.ts';

const bytesOf = (text: string): Address => parseAddress(text) ?? assert.fail(`${text} is no address`);
const rulesOf = (...texts: string[]) =>
  texts.map((text) => parseAddressRule(text) ?? assert.fail(`${text} is no rule`));
const NO_RULES = { allow: [], deny: [] };
const EVERYTHING = rulesOf('0.0.0.0/0', '::/0');

// An independent oracle: addresses as big integers, ranges by shifting, written without abbreviation.
interface Range {
  readonly first: bigint;
  readonly prefix: number;
  readonly bits: number;
}
const numberOf = (bytes: Address): bigint => BigInt(`0x${Buffer.from(bytes).toString('hex')}`);
const fromNumber = (value: bigint, bits: number): Address =>
  Uint8Array.from(Buffer.from(value.toString(16).padStart(bits / 4, '0'), 'hex'));
const inRange = ({ first, prefix, bits }: Range, value: bigint): boolean =>
  value >> BigInt(bits - prefix) === first >> BigInt(bits - prefix);
const lastOf = ({ first, prefix, bits }: Range): bigint => first + (1n << BigInt(bits - prefix)) - 1n;
const printed = (bytes: Address): string =>
  bytes.length === 4 ? bytes.join('.') : (Buffer.from(bytes).toString('hex').match(/.{4}/g) ?? []).join(':');
const canonical = (ipv6: string): string | undefined => URL.parse(`http://[${ipv6}]/`)?.hostname;

const CONTRACT = readFileSync(new URL('../../../CONTRACT.md', import.meta.url), 'utf8');
const lineOf = (id: string): string => CONTRACT.split('\n').find((line) => line.startsWith(`- **${id}** `)) ?? '';
const shift4 = (text: string): bigint =>
  text.split('.').reduce((sum, part, index) => sum + (BigInt(part) << BigInt(24 - 8 * index)), 0n);
const shift6 = (text: string): bigint =>
  text
    .replace('::', '')
    .split(':')
    .reduce((sum, part, index) => sum + (BigInt(`0x${part}`) << BigInt(112 - 16 * index)), 0n);

const rangesIn = (id: string, form: RegExp, read: (base: string) => bigint, bits: number): Range[] =>
  [...lineOf(id).matchAll(form)].map(([, base = '', prefix = bits]) => ({
    first: read(base),
    prefix: Number(prefix),
    bits,
  }));
/** `100.64/10` as the contract writes it, and the single address it lists. */
const NOT_PUBLIC_4 = rangesIn('address 1', /(\d[\d.]*(?=\/)|(?<=nor is )[\d.]+\d)(?:\/(\d+))?/g, shift4, 32);
const [GLOBAL, ...LATER_6] = rangesIn('address 2', /([0-9a-f:]+::)\/(\d+)/g, shift6, 128);
const NAT64 = LATER_6.pop() ?? assert.fail();
const NOT_PUBLIC_6 = LATER_6;

const isPublic4 = (value: bigint): boolean => !NOT_PUBLIC_4.some((range) => inRange(range, value));
function isPublic6(value: bigint): boolean {
  if (inRange(NAT64, value)) return isPublic4(value & 0xffffffffn);
  return inRange(GLOBAL ?? assert.fail(), value) && !NOT_PUBLIC_6.some((range) => inRange(range, value));
}

const ipv4 = fc.bigInt({ min: 0n, max: (1n << 32n) - 1n });
const ipv6 = fc.bigInt({ min: 0n, max: (1n << 128n) - 1n });
const within = (ranges: readonly Range[]) =>
  fc.constantFrom(...ranges).chain((range) => fc.bigInt({ min: range.first, max: lastOf(range) }));
const edgesOf = (range: Range): bigint[] =>
  [range.first - 1n, range.first, lastOf(range), lastOf(range) + 1n].filter(
    (value) => value >= 0n && value < 1n << BigInt(range.bits),
  );

test('all ranges of the contract were parsed', () => {
  assert.equal(NOT_PUBLIC_4.length, 18);
  assert.equal(NOT_PUBLIC_6.length, 5);
  assert.deepEqual(
    [GLOBAL, NAT64].map((range) => printed(fromNumber(range?.first ?? 0n, 128)).slice(0, 9)),
    ['2000:0000', '0064:ff9b'],
  );
});

const WRITTEN: readonly (readonly [string, string])[] = [
  ['0.0.0.0', '00000000'],
  ['192.0.2.255', 'c00002ff'],
  ['::', '0'.repeat(32)],
  ['::1', '1'.padStart(32, '0')],
  ['1::', `0001${'0'.repeat(28)}`],
  ['2001:DB8::aBcd', `20010db8${'0'.repeat(20)}abcd`],
  ['1:2:3:4:5:6:7:8', '00010002000300040005000600070008'],
  ['1:2:3:4:5:6:7::', '00010002000300040005000600070000'],
  ['::ffff:192.0.2.1', '00000000000000000000ffffc0000201'],
  ['1:2:3:4:5:6:10.11.12.13', '0001000200030004000500060a0b0c0d'],
];
const NOT_WRITTEN = [
  ...['', '1', '1.2.3', '1.2.3.4.5', '1.2.3.256', '01.2.3.4', '1.2.3.00', '1.2.3.4 ', ' 1.2.3.4', '1.2.3.', '1..3.4'],
  ...['0x1.2.3.4', '+1.2.3.4', '1.2.3.-4', '1.2.3.1e1', '１.2.3.4', '1.2.3.4\n', '2130706433', 'localhost'],
  ...[':', ':::', '1:', ':1', '1::2::3', '1:2:3:4:5:6:7', '1:2:3:4:5:6:7:8:9', '1:2:3:4:5:6:7:8::', '::00001', '::g'],
  ...['::1%eth0', '[::1]', '::1/128', '::1 ', '1.2.3.4::', '::1.2.3.4:5', '::1.2.3', '::01.2.3.4', '::1.2.3.256'],
  ...['1:2:3:4:5:6:7:1.2.3.4', '1:2:3:4:5:1.2.3.4', '::1:', '1:::2', '::-1', '::+1', '::0x1', '::1\n'],
];

test('an address is accepted in its strict forms only', () => {
  for (const [text, hex] of WRITTEN) assert.equal(Buffer.from(bytesOf(text)).toString('hex'), hex, text);
  for (const text of NOT_WRITTEN) assert.equal(parseAddress(text), undefined, JSON.stringify(text));
});

/** A valid address with one character removed, inserted or replaced. */
const nearlyAnAddress = fc
  .tuple(fc.oneof(fc.ipV4(), fc.ipV6()), fc.nat(45), fc.nat(1), fc.constantFrom('', ...'0f:.%[ xG19', '::', '1.2.3.4'))
  .map(
    ([text, at, cut, put]) => text.slice(0, at % (text.length + 1)) + put + text.slice((at % (text.length + 1)) + cut),
  );

test('addresses are those that node accepts, without zones', () => {
  fc.assert(
    fc.property(fc.oneof(fc.ipV4(), fc.ipV6(), nearlyAnAddress), (text) => {
      const bytes = parseAddress(text);
      assert.equal(bytes !== undefined, isIP(text) !== 0 && !text.includes('%'));
      if (bytes?.length === 4) assert.equal(printed(bytes), text);
      if (bytes?.length === 16) assert.equal(canonical(printed(bytes)), canonical(text));
    }),
    { numRuns: 3000 },
  );
});

test('every address round-trips through its longest and its shortest form', () => {
  fc.assert(
    fc.property(fc.oneof(ipv6, within([...NOT_PUBLIC_6, NAT64])), (value) => {
      const bytes = fromNumber(value, 128);
      assert.deepEqual(parseAddress(printed(bytes)), bytes);
      assert.deepEqual(parseAddress((canonical(printed(bytes)) ?? '').slice(1, -1)), bytes);
    }),
  );
  fc.assert(fc.property(ipv4, (value) => numberOf(bytesOf(printed(fromNumber(value, 32)))) === value));
});

test('an IPv4 address is public unless the contract lists it', () => {
  for (const value of NOT_PUBLIC_4.flatMap(edgesOf)) {
    assert.equal(isPublicAddress(fromNumber(value, 32)), isPublic4(value), printed(fromNumber(value, 32)));
  }
  fc.assert(
    fc.property(fc.oneof(ipv4, within(NOT_PUBLIC_4)), (value) => {
      assert.equal(isPublicAddress(fromNumber(value, 32)), isPublic4(value));
    }),
    { numRuns: 2000 },
  );
});

test('an IPv6 address is public only where the contract says so', () => {
  const ranges = [GLOBAL ?? assert.fail(), ...NOT_PUBLIC_6, NAT64];
  for (const value of ranges.flatMap(edgesOf)) {
    assert.equal(isPublicAddress(fromNumber(value, 128)), isPublic6(value), printed(fromNumber(value, 128)));
  }
  fc.assert(
    fc.property(fc.oneof(ipv6, within(ranges)), (value) => {
      assert.equal(isPublicAddress(fromNumber(value, 128)), isPublic6(value));
    }),
    { numRuns: 2000 },
  );
});

const hex4 = (value: bigint): string => value.toString(16).padStart(8, '0').replace(/^.{4}/, '$&:');
const dotted = (value: bigint): string => printed(fromNumber(value, 32));
const WRAPPINGS: Readonly<Record<string, (value: bigint) => string>> = {
  mapped: (value) => `::ffff:${dotted(value)}`,
  compatible: (value) => `::${dotted(value)}`,
  translated: (value) => `::ffff:0:${dotted(value)}`,
  '6to4': (value) => `2002:${hex4(value)}::1`,
  'Teredo server': (value) => `2001:0:${hex4(value)}::1`,
  'Teredo client': (value) => `2001:0:808:808:0:0:${hex4(value ^ 0xffffffffn)}`,
  'local NAT64 /96': (value) => `64:ff9b:1::${dotted(value)}`,
  'local NAT64 /48': (value) => `64:ff9b:1:${hex4(value).replace(/:(..)/, ':00$1:')}00::`,
  'ISATAP, link-local': (value) => `fe80::5efe:${dotted(value)}`,
  'ISATAP, private': (value) => `fd00::200:5efe:${dotted(value)}`,
  'ISATAP, 6to4': (value) => `2002:808:808::5efe:${dotted(value)}`,
};

test('an IPv4 address is not made public by wrapping it into IPv6', () => {
  for (const [name, wrapped] of Object.entries(WRAPPINGS)) {
    fc.assert(
      fc.property(fc.oneof(ipv4, within(NOT_PUBLIC_4)), (value) => {
        assert.equal(isPublicAddress(bytesOf(wrapped(value))), false, name);
        assert.equal(judgeAddress(bytesOf(wrapped(value)), 443, NO_RULES), 'refused', name);
      }),
    );
  }
});

test('an IPv4 address translated to IPv6 is as public as the plain one', () => {
  fc.assert(
    fc.property(fc.oneof(ipv4, within(NOT_PUBLIC_4)), (value) => {
      const verdict = isPublic4(value) ? 'public' : 'refused';
      assert.equal(judgeAddress(fromNumber(value, 32), 443, NO_RULES), verdict);
      assert.equal(judgeAddress(bytesOf(`64:ff9b::${dotted(value)}`), 443, NO_RULES), verdict);
    }),
  );
});

test('byte strings of any length but 4 and 16 are refused', () => {
  for (const length of [0, 3, 5, 8, 15, 17]) {
    assert.equal(judgeAddress(new Uint8Array(length).fill(0x20), 443, { allow: EVERYTHING, deny: [] }), 'refused');
  }
});

const RULES: readonly (readonly [string, string, number, number | null])[] = [
  ['127.0.0.1', '127.0.0.1', 32, null],
  ['127.0.0.1:9443', '127.0.0.1', 32, 9443],
  ['10.0.0.0/8', '10.0.0.0', 8, null],
  ['10.0.0.0/8:443', '10.0.0.0', 8, 443],
  ['172.16.0.0/12:65535', '172.16.0.0', 12, 65535],
  ['0.0.0.0/0:1', '0.0.0.0', 0, 1],
  ['::1', '::1', 128, null],
  ['[::1]:9443', '::1', 128, 9443],
  ['fd00::/8', 'fd00::', 8, null],
  ['[fd00::/8]:443', 'fd00::', 8, 443],
  ['fe00::/7', 'fe00::', 7, null],
  ['::/0', '::', 0, null],
  ['::ffff:10.0.0.0/104', '10.0.0.0', 8, null],
  ['[::ffff:10.1.2.3]:443', '10.1.2.3', 32, 443],
  ['::ffff:0:0/96', '0.0.0.0', 0, null],
  ['::fffe:0:0/95', '::fffe:0:0', 95, null],
  ['::fffe:0:0/96', '::fffe:0:0', 96, null],
];
const NO_RULE = [
  ...['', ':', '/', '127.0.0.1:', '127.0.0.1:0', '127.0.0.1:65536', '127.0.0.1:080', '127.0.0.1:+1', '127.0.0.1: 1'],
  ...['10.0.0.1/8', '10.0.0.0/33', '10.0.0.0/', '10.0.0.0/08', '10.0.0.0/-1', '10.0.0.0/8/8', '10.128.0.0/8', '10/8'],
  ...['10.0.0.0:443/8', '10.0.0.0/255.0.0.0', '127.0.0.1:443:443', ' 127.0.0.1', 'localhost', 'localhost:443'],
  ...['[::1]', '[::1]:', '[::1]:0', '[::1]:99999', '[::1', '::1]:443', '[::1]443', '[::1]:443:443'],
  ...['[127.0.0.1]:443', '[10.0.0.0/8]:443', '::ffff:10.0.0.1/104', '2001:db8::1:443/128:443'],
  ...['fd00::1/8', 'fe00::/6', '::/129', '::1/127', '[fd00::]/8:443', '[fd00::1/8]:443', '[[::1]]:443', '::1%lo'],
];

test('a rule is an address or a network, with or without a port', () => {
  for (const [text, address, prefix, port] of RULES) {
    assert.deepEqual(parseAddressRule(text), { address: bytesOf(address), prefix, port }, text);
  }
  for (const text of NO_RULE) assert.equal(parseAddressRule(text), undefined, JSON.stringify(text));
});

test('a rule matches exactly the addresses with its prefix', () => {
  const sample = fc.constantFrom(32, 128).chain((bits) =>
    fc.record({
      bits: fc.constant(bits),
      // Inside 10.0.0.0/8 and fd00::/8, so that only the rule decides.
      base: fc
        .bigInt({ min: 0n, max: (1n << BigInt(bits - 8)) - 1n })
        .map((low) => ((bits === 32 ? 0x0an : 0xfdn) << BigInt(bits - 8)) + low),
      prefix: fc.integer({ min: 0, max: bits }),
      flip: fc.integer({ min: 0, max: bits - 9 }),
    }),
  );
  fc.assert(
    fc.property(sample, ({ bits, base, prefix, flip }) => {
      const first = (base >> BigInt(bits - prefix)) << BigInt(bits - prefix);
      const allow = rulesOf(`${printed(fromNumber(first, bits))}/${prefix}`);
      const verdictOn = (value: bigint) => judgeAddress(fromNumber(value, bits), 443, { allow, deny: [] });
      assert.equal(verdictOn(base), 'allowed');
      const other = base ^ (1n << BigInt(flip));
      assert.equal(verdictOn(other), inRange({ first, prefix, bits }, other) ? 'allowed' : 'refused');
    }),
    { numRuns: 1000 },
  );
});

const VERDICTS: readonly (readonly [string, string[], string[], string])[] = [
  ['8.8.8.8', [], [], 'public'],
  ['8.8.8.8', ['8.8.8.8'], [], 'public'],
  ['8.8.8.8', ['8.8.8.8'], ['8.8.8.0/24'], 'refused'],
  ['8.8.8.8', [], ['8.8.8.8:443'], 'refused'],
  ['8.8.8.8', [], ['8.8.8.8:8443', '9.9.9.9', '::/0'], 'public'],
  ['8.8.8.8', [], ['::ffff:8.8.8.8'], 'refused'],
  ['64:ff9b::8.8.8.8', [], ['8.8.8.8:443'], 'refused'],
  ['64:ff9b::8.8.8.8', [], ['8.8.8.8:444', '8.8.8.9'], 'public'],
  ['64:ff9b::8.8.8.8', [], ['64:ff9b::808:808'], 'refused'],
  ['2606:4700::1', [], [], 'public'],
  ['2606:4700::1', ['::/0'], ['[2606:4700::/32]:443'], 'refused'],
  ['2606:4700::1', [], ['0.0.0.0/0'], 'public'],
  ['127.0.0.1', [], [], 'refused'],
  ['127.0.0.1', ['127.0.0.1:443'], [], 'allowed'],
  ['127.0.0.1', ['10.0.0.0/8', '127.0.0.1'], [], 'allowed'],
  ['127.0.0.1', ['127.0.0.1:444', '127.0.0.2', '::/0'], [], 'refused'],
  ['127.0.0.1', ['127.0.0.1:443'], ['127.0.0.0/8'], 'refused'],
  ['127.0.0.1', ['127.0.0.1'], ['127.0.0.1:444'], 'allowed'],
  ['::1', ['[::1]:443'], [], 'allowed'],
  ['::1', ['0.0.0.0/0'], [], 'refused'],
  ['fd00::1', ['fd00::/8'], ['fd00::/16'], 'refused'],
  // The allow list is exact: a translated address is only what it is written as.
  ['64:ff9b::10.0.0.1', ['10.0.0.0/8'], [], 'refused'],
  ['64:ff9b::10.0.0.1', ['64:ff9b::/96'], [], 'allowed'],
  ['64:ff9b::10.0.0.1', ['64:ff9b::/96'], ['10.0.0.1'], 'refused'],
  ['2002:a00:1::1', ['2002::/16'], [], 'allowed'],
  ['2002:a00:1::1', ['2002::/16'], ['10.0.0.1'], 'refused'],
];

test('deny overrides allow, and allow permits only what it lists', () => {
  for (const [address, allow, deny, verdict] of VERDICTS) {
    const rules = { allow: rulesOf(...allow), deny: rulesOf(...deny) };
    assert.equal(judgeAddress(bytesOf(address), 443, rules), verdict, `${address} +${allow} -${deny}`);
  }
});

const NEVER = [
  ...['0.0.0.0', '0.255.255.255', '169.254.0.0', '169.254.169.254', '169.254.255.255', '224.0.0.0', '239.1.2.3'],
  ...['240.0.0.1', '255.255.255.255', '168.63.129.16', '192.0.0.192', '100.100.100.200', '100.96.0.96'],
];
const NEVER_6 = [
  ...['::', 'fe80::', 'fe80::a9fe:a9fe', 'febf:ffff:ffff:ffff:ffff:ffff:ffff:ffff', 'ff00::', 'ff02::1', 'ffff::'],
  ...['fd00:ec2::23', 'fd00:ec2::254', 'fd20:ce::254', 'fd00:c1::a9fe:a9fe', 'fd00:100::100:200', 'fd00:42::42'],
  ...['fd00:a9fe:a9fe::1', '::ffff:0.0.0.0', '::ffff:8.8.8.8', '::ffff:127.0.0.1', '::ffff:255.255.255.255'],
];
/** Adjacent to one of the above, and ordinary. */
const BESIDE = [
  ...['169.255.0.0', '168.63.129.17', '192.0.0.191', '192.0.0.193', '100.100.100.199', '100.100.100.201'],
  ...['100.96.0.97', '10.0.0.1', '::1', '::2', 'fe7f::1', 'fec0::', 'feff::', 'fd00:ec1::254', 'fd00:ec3::'],
  ...['fd20:ce::253', 'fd00:42::43', 'fd00:c1::a9fe:a9ff', 'fd00:100::100:201', 'fd00:a9fe:a9fe::2'],
  ...['::fffe:127.0.0.1', '::1:0:127.0.0.1'],
];

test('no rule opens link-local, metadata, multicast or mapped addresses', () => {
  const verdictOn = (text: string) =>
    judgeAddress(bytesOf(text), 443, { allow: [...EVERYTHING, ...rulesOf(text)], deny: [] });
  for (const text of [...NEVER, ...NEVER_6]) assert.equal(verdictOn(text), 'refused', text);
  for (const text of BESIDE) assert.notEqual(verdictOn(text), 'refused', text);
  for (const address of NEVER) {
    const value = shift4(address);
    for (const name of ['mapped', 'translated', '6to4', 'local NAT64 /96']) {
      assert.equal(verdictOn(WRAPPINGS[name]?.(value) ?? ''), 'refused', `${name} ${address}`);
    }
    assert.equal(verdictOn(`64:ff9b::${address}`), 'refused', `NAT64 ${address}`);
  }
});

test('names of this machine and of the local network are local, in any case', () => {
  const LOCAL = 'localhost LocalHost a.localhost printer.local local a.b.internal INTERNAL home.arpa nas.Home.Arpa';
  const OTHER = 'localhost.com mylocalhost notlocal a.xlocal local.example.com arpa home.arpa.com homexarpa xhome.arpa';
  for (const host of [...LOCAL.split(' '), 'localhost.']) assert.equal(isLocalName(host), true, host);
  for (const host of [...OTHER.split(' '), '', '127.0.0.1']) assert.equal(isLocalName(host), false, host);
});
