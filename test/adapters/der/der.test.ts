import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { DerPrepender } from '../../../src/adapters/der/prepend.ts';
import { DerError, DerReader } from '../../../src/adapters/der/reader.ts';
import * as der from '../../../src/adapters/der/writer.ts';

const hex = (bytes: Uint8Array): string => Buffer.from(bytes).toString('hex');
const bytes = (text: string): Uint8Array => new Uint8Array(Buffer.from(text.replaceAll(' ', ''), 'hex'));
const reader = (text: string): DerReader => new DerReader(bytes(text));
const blob = (maxLength = 300) => fc.uint8Array({ maxLength });

test('values are written in their only DER encoding', () => {
  const table: readonly [Uint8Array, string][] = [
    [der.integer(0), '02 01 00'],
    [der.integer(127), '02 01 7f'],
    [der.integer(128), '02 02 00 80'],
    [der.integer(256), '02 02 01 00'],
    [der.integer(2 ** 53 - 1), '02 07 1f ff ff ff ff ff ff'],
    [der.integer(new Uint8Array()), '02 01 00'],
    [der.integer(bytes('00 00 00')), '02 01 00'],
    [der.integer(bytes('00 00 80')), '02 02 00 80'],
    [der.oid('1.2.840.113549.1.1.11'), '06 09 2a 86 48 86 f7 0d 01 01 0b'],
    [der.oid('0.0'), '06 01 00'],
    [der.oid('2.999.3'), '06 03 88 37 03'],
    [der.bitString(bytes('ab')), '03 02 00 ab'],
    [der.namedBits([]), '03 01 00'],
    [der.namedBits([0]), '03 02 07 80'],
    // digitalSignature and keyEncipherment; keyCertSign and cRLSign; decipherOnly, the ninth.
    [der.namedBits([0, 2]), '03 02 05 a0'],
    [der.namedBits([6, 5]), '03 02 01 06'],
    [der.namedBits([8]), '03 03 07 00 80'],
    [der.octetString(bytes('01 02')), '04 02 01 02'],
    [der.boolean(true), '01 01 ff'],
    [der.boolean(false), '01 01 00'],
    [der.NULL, '05 00'],
    [der.utf8String('证'), '0c 03 e8 af 81'],
    [der.printableString("A z.0'()+,-/:=?"), `13 0f ${hex(Buffer.from("A z.0'()+,-/:=?"))}`],
    [der.ia5String('a@*'), '16 03 61 40 2a'],
    [der.sequence([]), '30 00'],
    [der.sequence([der.NULL, der.boolean(true)]), '30 05 05 00 01 01 ff'],
    [der.setOf([der.integer(2), der.boolean(true), der.integer(1)]), '31 09 01 01 ff 02 01 01 02 01 02'],
    [der.explicit(3, der.NULL), 'a3 02 05 00'],
    [der.implicit(0, der.octetString(bytes('01'))), '80 01 01'],
    [der.implicit(1, der.sequence([der.NULL])), 'a1 02 05 00'],
    [der.raw(0x5f, bytes('00')), '5f 01 00'],
    [der.time(new Date('2049-12-31T23:59:59.999Z')), `17 0d ${hex(Buffer.from('491231235959Z'))}`],
    [der.time(new Date('2050-01-01T00:00:00Z')), `18 0f ${hex(Buffer.from('20500101000000Z'))}`],
    [der.time(new Date('1950-01-01T00:00:00Z')), `17 0d ${hex(Buffer.from('500101000000Z'))}`],
  ];
  for (const [written, wanted] of table) assert.equal(hex(written), wanted.replaceAll(' ', ''));
  for (const [length, header] of [
    [127, '047f'],
    [128, '048180'],
    [255, '0481ff'],
    [256, '04820100'],
    [65_535, '0482ffff'],
    [65_536, '0483010000'],
  ] as const) {
    const element = der.octetString(new Uint8Array(length));
    assert.equal(hex(element.subarray(0, element.length - length)), header);
  }
});

test('values without a DER encoding are a programming error', () => {
  for (const wrong of [
    () => der.integer(-1),
    () => der.integer(0.5),
    () => der.integer(2 ** 53),
    ...['', '1', '1.', '3.1', '1.40', '1.2.x', '1.2.-1', '1.2.01', '1.2.1e3', `1.2.${2 ** 53}`, '1..2'].map(
      (dotted) => () => der.oid(dotted),
    ),
    () => der.printableString('a@b'),
    () => der.printableString('*'),
    () => der.ia5String('é'),
    () => der.utf8String('\ud800'),
    () => der.explicit(31, der.NULL),
    () => der.implicit(-1, der.NULL),
    () => der.time(new Date(Number.NaN)),
    () => der.time(new Date('1949-12-31T23:59:59Z')),
    () => der.time(new Date(Date.UTC(10_000, 0))),
  ]) {
    assert.throws(wrong, (error) => error instanceof TypeError || error instanceof RangeError, String(wrong));
  }
});

test('a sequence is large enough for the entries of a CRL', () => {
  const entries = Array.from({ length: 100_000 }, (_, index) => der.integer(index));
  const list = new DerReader(der.sequence(entries)).sequence();
  let count = 0;
  for (; !list.isAtEnd; count += 1) list.integer();
  assert.equal(count, entries.length);
});

test('written values are read back', () => {
  fc.assert(
    fc.property(blob(), fc.array(fc.nat(2 ** 31), { maxLength: 8 }), fc.nat(30), (content, arcs, number) => {
      const dotted = ['2', '5', ...arcs].join('.');
      const magnitude = Uint8Array.from([1, ...content]);
      const inner = der.sequence([der.integer(magnitude), der.oid(dotted), der.bitString(content)]);
      const outer = new DerReader(
        der.sequence([der.setOf([inner]), der.explicit(number, der.octetString(content)), der.NULL]),
      );
      const list = outer.sequence();
      outer.end();
      const inside = list.set().sequence();
      assert.deepEqual(inside.positive(), magnitude);
      assert.equal(inside.oid(), dotted);
      assert.deepEqual(inside.bitString(), content);
      inside.end();
      assert.equal(list.context((number + 1) % 31), undefined);
      assert.deepEqual(list.context(number)?.octetString(), content);
      assert.deepEqual(list.any(), der.NULL);
      list.end();
    }),
  );
});

test('a magnitude is written in its shortest form and read back unchanged', () => {
  fc.assert(
    fc.property(fc.uint8Array({ minLength: 1, maxLength: 40 }), (magnitude) => {
      const significant = magnitude.subarray(magnitude.findIndex((byte) => byte !== 0));
      const read = new DerReader(der.integer(magnitude));
      if (magnitude.every((byte) => byte === 0)) assert.deepEqual(read.integer(), Uint8Array.of(0));
      else assert.deepEqual(read.positive(), significant);
    }),
  );
});

const NOT_DER: Readonly<Record<string, [string, (reader: DerReader) => unknown]>> = {
  nothing: ['', (one) => one.any()],
  'a tag alone': ['30', (one) => one.any()],
  'a length beyond the end': ['04 02 00', (one) => one.any()],
  'a long length beyond the end': ['04 82 01', (one) => one.any()],
  'a length of four gigabytes': ['04 84 ff ff ff ff 00', (one) => one.any()],
  'a length of five bytes': [`04 85 00 00 00 00 01 00`, (one) => one.any()],
  'a length of 127 bytes': ['04 ff 01', (one) => one.any()],
  'an indefinite length': ['30 80 05 00 00 00', (one) => one.any()],
  'a long form for a short length': ['04 81 01 00', (one) => one.any()],
  'a length with a zero before it': [`04 82 00 80 ${'00'.repeat(128)}`, (one) => one.any()],
  'a high tag number': ['1f 01 00', (one) => one.any()],
  'a high tag number of a context': ['bf 02 05 00', (one) => one.any()],
  'an end of contents': ['00 00', (one) => one.any()],
  'a constructed octet string': ['24 03 04 01 00', (one) => one.any()],
  'a constructed bit string': ['23 04 03 02 00 01', (one) => one.any()],
  'a constructed UTF-8 string': ['2c 00', (one) => one.any()],
  'a primitive sequence': ['10 00', (one) => one.any()],
  'a primitive set': ['11 00', (one) => one.any()],
  'an inner element longer than its list': ['30 03 04 02 00', (one) => one.any()],
  'an inner element that reaches into the next': ['30 06 30 02 04 01 05 00', (one) => one.any()],
  'half a header inside a list': ['30 01 05', (one) => one.any()],
  'a wrong tag': ['31 00', (one) => one.sequence()],
  'an integer without bytes': ['02 00', (one) => one.integer()],
  'an integer with a zero too many': ['02 02 00 7f', (one) => one.integer()],
  'an integer padded with ones': ['02 02 ff 80', (one) => one.integer()],
  'a negative magnitude': ['02 01 80', (one) => one.positive()],
  'zero as a magnitude': ['02 01 00', (one) => one.positive()],
  'an OID without bytes': ['06 00', (one) => one.oid()],
  'an OID that does not end': ['06 02 2a 86', (one) => one.oid()],
  'an OID with padding': ['06 03 2a 80 01', (one) => one.oid()],
  'an OID that begins with padding': ['06 02 80 01', (one) => one.oid()],
  'an OID with a huge arc': ['06 0a 2a ff ff ff ff ff ff ff ff 7f', (one) => one.oid()],
  'a huge OID': [`06 41 2a ${'01'.repeat(64)}`, (one) => one.oid()],
  'a bit string without bytes': ['03 00', (one) => one.bitString()],
  'a bit string of broken bytes': ['03 02 01 fe', (one) => one.bitString()],
  'a list where a string belongs': ['30 00', (one) => one.primitive()],
  'bytes left over': ['05 00 00', (one) => [one.any(), one.end()]],
};

test('input that is not DER is rejected', () => {
  for (const [what, [text, read]] of Object.entries(NOT_DER)) {
    assert.throws(() => read(reader(text)), DerError, what);
  }
});

test('negative integers are read, in two’s complement', () => {
  assert.deepEqual(reader('02 01 ff').integer(), Uint8Array.of(0xff));
  assert.deepEqual(reader('02 02 ff 7f').integer(), Uint8Array.of(0xff, 0x7f));
});

test('nesting is bounded for every way of reading elements', () => {
  const nested = (depth: number): Uint8Array => (depth === 0 ? der.NULL : der.sequence([nested(depth - 1)]));
  assert.deepEqual(new DerReader(nested(16)).any(), nested(16));
  assert.throws(() => new DerReader(nested(17)).any(), DerError);
  const descend = (depth: number): void => {
    let inside = new DerReader(nested(depth));
    for (let level = 0; level < depth; level += 1) inside = inside.sequence();
  };
  descend(16);
  assert.throws(() => descend(17), DerError);
  assert.throws(() => new DerReader(nested(17)).sequence().sequence().any(), DerError);
});

test('reading is linear: a megabyte of the smallest elements is fast', () => {
  const wide = der.sequence(Array.from({ length: 500_000 }, () => der.NULL));
  const started = performance.now();
  assert.equal(new DerReader(wide).any().length, wide.length);
  assert.ok(performance.now() - started < 2_000);
});

/** Random bytes, biased towards DER. */
const derLike = fc
  .array(
    fc.oneof(
      fc.constantFrom(0x02, 0x03, 0x04, 0x05, 0x06, 0x0c, 0x30, 0x31, 0x80, 0x81, 0x82, 0xa0, 0xff, 0x00, 0x01, 0x7f),
      fc.nat(12),
      fc.nat(255),
    ),
    { maxLength: 40 },
  )
  .map((list) => Uint8Array.from(list));

const METHODS = [
  'sequence',
  'set',
  'integer',
  'positive',
  'oid',
  'bitString',
  'octetString',
  'primitive',
  'any',
] as const;

test('any input throws nothing but DerError', () => {
  fc.assert(
    fc.property(fc.oneof(derLike, blob(60)), fc.array(fc.constantFrom(...METHODS, 'end', 'context')), (text, calls) => {
      let cursor = new DerReader(text);
      try {
        for (const call of calls) {
          if (call === 'context') cursor = cursor.context(0) ?? cursor;
          else if (call === 'sequence' || call === 'set') cursor = cursor[call]();
          else cursor[call]();
        }
      } catch (error) {
        assert.ok(error instanceof DerError, String(error));
      }
    }),
    { numRuns: 5_000 },
  );
});

test('a length has one encoding, and all others are rejected', () => {
  fc.assert(
    fc.property(fc.nat(70_000), fc.integer({ min: 0, max: 6 }), (length, lengthBytes) => {
      const digits = Array.from(
        { length: lengthBytes },
        (_, index) => Math.floor(length / 256 ** (lengthBytes - 1 - index)) % 256,
      );
      const header = lengthBytes === 0 ? [0x04, length & 0x7f] : [0x04, 0x80 | lengthBytes, ...digits];
      const element = Uint8Array.from([...header, ...new Uint8Array(length)]);
      const read = new DerReader(element);
      const shortest = length < 0x80 ? 0 : length < 0x100 ? 1 : length < 0x10000 ? 2 : 3;
      if (lengthBytes === shortest) assert.equal(read.octetString().length, length);
      else assert.throws(() => [read.any(), read.end()], DerError);
    }),
  );
});

test('what is written from its end is what the nested functions write, also after an abandoned attempt', () => {
  const nested = fc.letrec<{ node: Node }>((tie) => ({
    node: fc.oneof({ depthSize: 'small' }, blob(40_000), fc.array(tie('node'), { maxLength: 4 })),
  }));
  const writer = new DerPrepender(16);
  const put = (node: Node): void => {
    const from = writer.length;
    if (node instanceof Uint8Array) writer.put(node);
    else for (const one of node.toReversed()) put(one);
    writer.wrap(node instanceof Uint8Array ? der.TAG.octetString : der.TAG.sequence, from);
  };
  const written = (node: Node): Uint8Array =>
    node instanceof Uint8Array ? der.octetString(node) : der.sequence(node.map(written));
  fc.assert(
    fc.property(nested.node, (node) => {
      writer.put(Uint8Array.of(1, 2, 3));
      writer.begin();
      put(node);
      assert.equal(hex(writer.copy()), hex(written(node)));
    }),
  );
});
type Node = Uint8Array | readonly Node[];
