// The client's DNS messages: queries as another library reads them, responses as another library writes them, and
// responses that nobody should write.
import assert from 'node:assert/strict';
import { Resolver } from 'node:dns/promises';
import { test } from 'node:test';
import packet from 'dns-packet';
import fc from 'fast-check';
import { outcomeOf, parseServer } from '../../../src/adapters/dns/exchange.ts';
import {
  decodeCaa,
  decodeResponse,
  decodeTxt,
  encodeQuery,
  isName,
  isResponseTo,
  MalformedMessage,
  type Query,
} from '../../../src/adapters/dns/message.ts';
import { response } from '../../support/scripted-name-server.ts';

const NO_CASE = new Uint8Array();
const query = (name = 'www.example.test', type: 'TXT' | 'CAA' = 'CAA') => encodeQuery({ name, type }, 0xabcd, NO_CASE);
const recordsIn = (asked: Query, message: Buffer): readonly Buffer[] => {
  assert.ok(isResponseTo(asked, message));
  const decoded = decodeResponse(asked, message);
  assert.equal(decoded.kind, 'answer');
  return decoded.kind === 'answer' ? decoded.records : [];
};

const label = fc
  .array(
    fc.integer({ min: 0x21, max: 0x7e }).filter((byte) => byte !== 0x2e),
    { minLength: 1, maxLength: 20 },
  )
  .map((bytes) => String.fromCharCode(...bytes));
const names = fc.array(label, { minLength: 1, maxLength: 10 }).map((labels) => labels.join('.'));
const types = fc.constantFrom('TXT' as const, 'CAA' as const);

test('a query has one question, EDNS with 1,232 bytes and DO, asks for recursion and never disables checking', () => {
  fc.assert(
    fc.property(names, types, fc.nat(65_535), fc.uint8Array({ maxLength: 32 }), (name, type, id, caseBits) => {
      const { message, questionEnd } = encodeQuery({ name, type }, id, caseBits);
      const read = packet.decode(message);
      assert.equal(packet.decode.bytes, message.length);
      assert.deepEqual([read.id, read.type, read.flags], [id, 'query', packet.RECURSION_DESIRED]);
      const [question] = read.questions ?? [];
      assert.deepEqual([read.questions?.length, question?.type, question?.class], [1, type, 'IN']);
      assert.equal(question?.name.toLowerCase(), name.toLowerCase());
      const [opt] = read.additionals ?? [];
      assert.ok(opt?.type === 'OPT');
      assert.deepEqual([opt.udpPayloadSize, opt.flags, opt.options], [1_232, packet.DNSSEC_OK, []]);
      assert.equal(questionEnd, message.length - 11);
    }),
  );
});

test('every letter has the case that its bit says', () => {
  const asked = (bits: number) =>
    packet.decode(encodeQuery({ name: 'Aa-z9.bc', type: 'TXT' }, 1, Uint8Array.of(bits)).message).questions?.[0]?.name;
  assert.deepEqual([0x00, 0xff, 0x01, 0x82].map(asked), ['aa-z9.bc', 'AA-Z9.BC', 'Aa-z9.bc', 'aA-z9.bC']);
});

test('names that cannot be asked for are refused', () => {
  const long = `${'a'.repeat(63)}.`.repeat(3);
  for (const name of ['a', '_x.test', 'a'.repeat(63), `${long}${'a'.repeat(61)}`]) assert.ok(isName(name), name);
  for (const name of ['', 'a.', '.a', 'a..b', 'a b', 'é', 'a\0', 'a'.repeat(64), `${long}${'a'.repeat(62)}`]) {
    assert.ok(!isName(name), name);
    assert.throws(() => encodeQuery({ name, type: 'TXT' }, 1, NO_CASE), RangeError, name);
  }
});

test('the root is asked for as such, and is no name otherwise', () => {
  const { message, questionEnd } = encodeQuery({ name: '.', type: 'NS' }, 1, Uint8Array.of(0xff));
  const { questions } = packet.decode(message);
  assert.deepEqual([questions, message.length - questionEnd], [[{ name: '.', type: 'NS', class: 'IN' }], 11]);
  assert.ok(!isName('.'));
});

test('only id and question, byte for byte, make a response', () => {
  const asked = encodeQuery({ name: 'www.example.test', type: 'CAA' }, 0xabcd, Uint8Array.of(0xff));
  const good = response(asked.message);
  assert.ok(isResponseTo(asked, good));
  for (let offset = 0; offset < asked.questionEnd; offset += 1) {
    // Flags other than QR and the operation, and the numbers of records, are for the decoder.
    if (offset === 3 || (offset > 5 && offset < 12)) continue;
    for (const bit of offset === 2 ? [0x80, 0x08, 0x40] : [0x01, 0x20, 0x80]) {
      const changed = Buffer.from(good);
      changed[offset]! ^= bit;
      assert.ok(!isResponseTo(asked, changed), `byte ${offset}, bit ${bit}`);
    }
  }
  for (let length = 0; length < asked.questionEnd; length += 1) {
    assert.ok(!isResponseTo(asked, good.subarray(0, length)), `${length} bytes`);
  }
  const lower = query();
  assert.ok(!isResponseTo(lower, good));
  assert.ok(isResponseTo(lower, good, true));
  assert.ok(!isResponseTo(query('www.example.tess'), good, true));
});

test('records come out as another library has put them in', () => {
  const bytes = fc.uint8Array({ maxLength: 255 }).map((one) => Buffer.from(one));
  const strings = fc.array(bytes, { minLength: 1, maxLength: 4 });
  fc.assert(
    fc.property(names, fc.array(strings, { maxLength: 12 }), (name, sets) => {
      const asked = query(name, 'TXT');
      const answers = sets.map((data) => ({ type: 'TXT' as const, name: name.toUpperCase(), data }));
      const read = recordsIn(asked, response(asked.message, answers)).map(decodeTxt);
      assert.deepEqual(
        read,
        sets.map((set) => Buffer.concat(set).toString('latin1')),
      );
    }),
  );
  const tag = fc.stringMatching(/^[A-Za-z0-9]{1,15}$/);
  const value = fc.string({ unit: 'binary-ascii', maxLength: 300 });
  const caa = fc.record({ flags: fc.constantFrom(0, 128), tag, value }, { noNullPrototype: true });
  fc.assert(
    fc.property(names, fc.array(caa, { maxLength: 12 }), (name, sets) => {
      const asked = query(name);
      const answers = sets.map((data) => ({
        type: 'CAA' as const,
        name,
        data: { ...data, tag: data.tag as 'issue', issuerCritical: data.flags === 128 },
      }));
      assert.deepEqual(recordsIn(asked, response(asked.message, answers)).map(decodeCaa), sets);
    }),
  );
});

test('whatever bytes come, decoding ends, and throws only its own error', () => {
  const asked = query();
  const cname = { type: 'CNAME' as const, name: 'www.example.test', data: 'other.test' };
  const caa = { type: 'CAA' as const, name: 'other.test', data: { flags: 0, tag: 'issue' as const, value: 'ca.test' } };
  const good = response(asked.message, [cname, caa, caa]);
  const change = fc.tuple(fc.nat(good.length - 1), fc.oneof(fc.nat(255), fc.constantFrom(0xc0, 0x0c, 0x3f)));
  const mutated = fc
    .tuple(fc.array(change, { maxLength: 8 }), fc.nat(good.length), fc.uint8Array({ maxLength: 20 }))
    .map(([changes, length, rest]) => {
      const bytes = Buffer.concat([good, rest]).subarray(0, length + rest.length + 20);
      for (const [at, byte] of changes) if (at < bytes.length) bytes[at] = byte;
      return bytes;
    });
  const tail = fc
    .uint8Array({ maxLength: 600 })
    .map((rest) => Buffer.concat([good.subarray(0, asked.questionEnd), rest]));
  const anything = fc.uint8Array({ maxLength: 600 }).map((bytes) => Buffer.from(bytes));
  const closed = (decode: () => unknown) => {
    try {
      decode();
    } catch (error) {
      assert.ok(error instanceof MalformedMessage, String(error));
    }
  };
  fc.assert(
    fc.property(fc.oneof(anything, mutated, tail), (bytes) => {
      closed(() => decodeTxt(bytes));
      closed(() => decodeCaa(bytes));
      if (!isResponseTo(asked, bytes)) return;
      closed(() => {
        const decoded = decodeResponse(asked, bytes);
        if (decoded.kind === 'answer') for (const data of decoded.records) closed(() => decodeCaa(data));
      });
    }),
    { numRuns: 5_000 },
  );
});

/** A response with flags, the three numbers of records, and their bytes in hexadecimal after the question. */
const raw = (body: string, counts: readonly [number, number, number] = [1, 0, 0], flags = 0x8180): Buffer => {
  const { message, questionEnd } = query();
  const head = Buffer.from(message.subarray(0, questionEnd));
  head.writeUInt16BE(flags, 2);
  for (const [index, count] of counts.entries()) head.writeUInt16BE(count, 6 + 2 * index);
  return Buffer.concat([head, Buffer.from(body.replaceAll(' ', ''), 'hex')]);
};
/** The queried name is at byte 12, `example.test` at 16, the first record at 34. */
const CAA = 'c00c 0101 0001 00000000 0008 00 05 6973737565 78';
const cname = (owner: string, target: string) =>
  `${owner} 0005 0001 00000000 ${(target.replaceAll(' ', '').length / 2).toString(16).padStart(4, '0')} ${target}`;
const opt = (extendedRcode: string) => `00 0029 04d0 ${extendedRcode}008000 0000`;
const withOptions = (hex: string): string =>
  `00 0029 04d0 00008000 ${(hex.replaceAll(' ', '').length / 2).toString(16).padStart(4, '0')} ${hex}`;
/** A record of a name of three full labels and a last one. */
const longName = (last: number): string =>
  `${[63, 63, 63, last].map((length) => length.toString(16) + '61'.repeat(length)).join('')}00 0002 0001 00000000 0000`;
const numbered = (index: number) => `0261${(0x61 + index).toString(16)}00`;
const chainOf = (hops: number): string =>
  Array.from({ length: hops }, (_, index) => cname(index ? numbered(index - 1) : 'c00c', numbered(index))).join('') +
  CAA.replace('c00c', numbered(hops - 1));

const RESPONSES: Readonly<Record<string, readonly [outcome: string, message: Buffer]>> = {
  'a record': ['1 record', raw(CAA)],
  'a record and EDNS': ['1 record', raw(CAA + opt('00'), [1, 0, 1])],
  'no record': ['0 records', raw('', [0, 0, 0])],
  'a name that does not exist': ['0 records', raw('', [0, 0, 0], 0x8183)],
  'an answer of a zone': ['0 records', raw('', [0, 0, 0], 0x8400)],
  'a signature beside it': ['1 record', raw(`${CAA} c00c 002e 0001 00000000 0001 00`, [2, 0, 0])],
  'a chain': ['1 record', raw(chainOf(1), [2, 0, 0])],
  'a chain as long as may be': ['1 record', raw(chainOf(16), [17, 0, 0])],
  'a chain out of order': ['1 record', raw(CAA.replace('c00c', '016100') + cname('c00c', '016100'), [2, 0, 0])],
  'a chain in another case': ['1 record', raw(cname('c00c', '016100') + CAA.replace('c00c', '014100'), [2, 0, 0])],
  'a chain to nothing': ['0 records', raw(cname('c00c', '016100'))],
  'a chain to a name that does not exist': ['0 records', raw(cname('c00c', '016100'), [1, 0, 0], 0x8183)],
  SERVFAIL: ['servfail', raw('', [0, 0, 0], 0x8182)],
  'SERVFAIL with a record': ['servfail', raw(CAA, [1, 0, 0], 0x8182)],
  REFUSED: ['refused', raw('', [0, 0, 0], 0x8185)],
  FORMERR: ['refused', raw('', [0, 0, 0], 0x8181)],
  NOTIMP: ['refused', raw('', [0, 0, 0], 0x8184)],
  'BADVERS, whose lower bits are NOERROR': ['refused', raw(opt('01'), [0, 0, 1])],
  'a referral: neither from a zone nor recursive': ['refused', raw('', [0, 0, 0], 0x8100)],
  'an SOA record that is cut off': ['odd', raw('c00c 0006 0001 00000000 0004 00000001', [0, 1, 0])],
  'two OPT records': ['odd', raw(opt('00') + opt('00'), [0, 0, 2])],
  'an OPT record of a name': ['odd', raw(`c00c${opt('00').slice(2)}`, [0, 0, 1])],
  'an option that is cut off': ['odd', raw(withOptions('000f 0003 0006'), [0, 0, 1], 0x8182)],
  'half an option': ['odd', raw(withOptions('000f 00'), [0, 0, 1], 0x8182)],
  'an extended error without a code': ['odd', raw(withOptions('000f 0001 06'), [0, 0, 1], 0x8182)],
  truncated: ['odd', raw('', [0, 0, 0], 0x8380)],
  'truncated, with a record': ['odd', raw(CAA, [1, 0, 0], 0x8380)],
  'a record too few': ['odd', raw('')],
  'a record too many': ['odd', raw(CAA + CAA)],
  'a byte too many': ['odd', raw(`${CAA} 00`)],
  'a record that is cut off': ['odd', raw(CAA.slice(0, -2))],
  'a record without data': ['odd', raw('c00c 0101 0001 00000000')],
  'more records than bytes': ['odd', raw(CAA, [0xffff, 0xffff, 0xffff])],
  'many records': ['odd', raw(CAA.repeat(501), [501, 0, 0])],
  'a pointer to itself': ['odd', raw(CAA.replace('c00c', 'c022'))],
  'a pointer forwards': ['odd', raw(CAA.replace('c00c', 'c030'))],
  'a pointer into the header': ['odd', raw(CAA.replace('c00c', 'c000'))],
  'pointers in a circle': ['odd', raw(CAA.replace('c00c', '0161c022'))],
  'a pointer that is cut off': ['odd', raw('c0')],
  'a label of another kind': ['odd', raw(CAA.replace('c00c', '4161'))],
  'a name of 255 bytes': ['0 records', raw(longName(61), [0, 1, 0])],
  'a name of 256 bytes': ['odd', raw(longName(62), [0, 1, 0])],
  'a CNAME with bytes after it': ['odd', raw(cname('c00c', '016100 00'))],
  'a CNAME that ends in the next record': ['odd', raw(`c00c 0005 0001 00000000 0001 01 6100${CAA}`, [2, 0, 0])],
  'a CNAME loop': ['odd', raw(cname('c00c', '016100') + cname('016100', 'c00c'), [2, 0, 0])],
  'a CNAME to itself': ['odd', raw(cname('c00c', 'c00c'))],
  'a chain that is too long': ['odd', raw(chainOf(17), [18, 0, 0])],
  'two CNAMEs of one name': ['odd', raw(cname('c00c', '016100') + cname('c00c', '016200'), [2, 0, 0])],
  'a CNAME beside the record': ['odd', raw(cname('c00c', '016100') + CAA, [2, 0, 0])],
  'a record of another name': ['odd', raw(CAA.replace('c00c', 'c010'))],
  'a record of another class': ['odd', raw(CAA.replace('0101 0001', '0101 0003'))],
  'a record of a name that does not exist': ['odd', raw(CAA, [1, 0, 0], 0x8183)],
};

for (const [title, [expected, message]] of Object.entries(RESPONSES)) {
  test(`a response: ${title}`, () => {
    assert.ok(isResponseTo(query(), message));
    const outcome = outcomeOf(query(), message);
    const count = outcome.kind === 'answer' ? outcome.records.length : 0;
    assert.equal(outcome.kind === 'answer' ? `${count} ${count === 1 ? 'record' : 'records'}` : outcome.kind, expected);
  });
}

test('an answer tells how long it may be cached, and which name it is about', () => {
  const facts = (message: Buffer) => {
    const outcome = outcomeOf(query(), message);
    return outcome.kind === 'answer' ? [outcome.ttl, outcome.alias] : outcome.kind;
  };
  const lasting = (record: string, ttl: number) =>
    record.replace('0001 00000000', `0001 ${ttl.toString(16).padStart(8, '0')}`);
  const soa = (ttl: number, minimum: number) =>
    lasting(`c00c 0006 0001 00000000 0016 0000 ${'00'.repeat(16)} ${minimum.toString(16).padStart(8, '0')}`, ttl);
  assert.deepEqual(facts(raw(lasting(CAA, 300))), [300, undefined]);
  assert.deepEqual(facts(raw(lasting(CAA, 300) + lasting(CAA, 200), [2, 0, 0])), [200, undefined]);
  // The shortest of the chain, whose end is named; bytes that people cannot read are not shown.
  const chain = lasting(cname('c00c', '0341622e 0178 00'), 60) + lasting(CAA.replace('c00c', '0341622e 0178 00'), 90);
  assert.deepEqual(facts(raw(chain, [2, 0, 0])), [60, 'ab?.x']);
  // Without records the SOA record tells (RFC 2308), and without one nothing is cached.
  assert.deepEqual(facts(raw(soa(900, 300), [0, 1, 0])), [300, undefined]);
  assert.deepEqual(facts(raw(soa(200, 300), [0, 1, 0], 0x8183)), [200, undefined]);
  assert.deepEqual(facts(raw('', [0, 0, 0])), [0, undefined]);
  assert.deepEqual(facts(raw(lasting(cname('c00c', '016100'), 60) + soa(900, 300), [1, 1, 0])), [60, 'a']);
  // A TTL with the highest bit set is zero (RFC 2181).
  assert.deepEqual(facts(raw(lasting(CAA, 0x8000_0000))), [0, undefined]);
});

test('an extended error is read from SERVFAIL: bounded, printable, of DNSSEC first', () => {
  const extended = (hex: string) => {
    const outcome = outcomeOf(query(), raw(withOptions(hex), [0, 0, 1], 0x8182));
    return outcome.kind === 'servfail' ? outcome.extended : outcome.kind;
  };
  assert.equal(extended(''), undefined);
  assert.equal(extended('000a 0008 0011223344556677'), undefined, 'a cookie');
  assert.deepEqual(extended('000f 0002 0016'), { code: 22, text: '' });
  assert.deepEqual(extended('000f 0002 0016 000f 0004 0006 6162'), { code: 6, text: 'ab' });
  assert.deepEqual(extended('000f 0009 0017 61 0a e2 80 ae 00 00'), { code: 23, text: 'a????' });
  const long = extended(`000f 0202 0006 ${'61'.repeat(0x200)}`);
  assert.deepEqual(long, { code: 6, text: 'a'.repeat(120) });
});

test('the data of a record is read to its end, or not at all', () => {
  const hex = (text: string) => Buffer.from(text.replaceAll(' ', ''), 'hex');
  assert.deepEqual(decodeCaa(hex('80 05 6973737565 7573003b78')), { flags: 128, tag: 'issue', value: 'us\0;x' });
  assert.deepEqual(decodeCaa(hex('00 05 696f646566')), { flags: 0, tag: 'iodef', value: '' });
  assert.deepEqual(decodeCaa(hex('00 01 61 ff')), { flags: 0, tag: 'a', value: '\xff' });
  for (const bad of ['', '00', '00 00', '00 00 61', '00 02 61', '00 01 20', '00 02 6100', '00 01 e9']) {
    assert.throws(() => decodeCaa(hex(bad)), MalformedMessage, bad);
  }
  assert.equal(decodeTxt(hex('00')), '');
  assert.equal(decodeTxt(hex('01 61 00 02 6263')), 'abc');
  for (const bad of ['', '01', '02 61', '01 61 05 62']) assert.throws(() => decodeTxt(hex(bad)), MalformedMessage, bad);
});

test('resolvers are written as in the configuration, and as the system names them', () => {
  const parsed = (text: string) => Object.values(parseServer(text) ?? {}).join(' ');
  for (const system of new Resolver().getServers()) assert.ok(parseServer(system), system);
  assert.equal(parsed('192.0.2.53'), '192.0.2.53 4 53');
  assert.equal(parsed('192.0.2.53:5353'), '192.0.2.53 4 5353');
  assert.equal(parsed('2001:db8::53'), '2001:db8::53 6 53');
  assert.equal(parsed('[2001:db8::53]'), '2001:db8::53 6 53');
  assert.equal(parsed('[2001:db8::53]:5353'), '2001:db8::53 6 5353');
  assert.equal(parsed('fe80::1%eth0'), 'fe80::1%eth0 6 53');
  for (const bad of [
    '',
    'localhost',
    'localhost:53',
    '[192.0.2.53]:53',
    '192.0.2.53:',
    '[::1',
    '1.2.3.4:x',
    '1.2.3.4:0',
    '[::1]:65536',
  ]) {
    assert.equal(parseServer(bad), undefined, bad);
  }
});
