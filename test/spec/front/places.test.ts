// Places: no more are held than there are, a newcomer finds one however many others flood, and queues take turns.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { Places } from '../../../src/http/front/places.ts';
import { networkOf } from '../../../src/http/front/remote-network.ts';
import { rule } from '../../support/contract.ts';

/** Takes or queues, as requests do; what is held is recorded by key, in the order of admission. */
class Load {
  readonly places: Places;
  readonly held: string[] = [];
  readonly refused: string[] = [];

  constructor(count: number, isSaturated?: () => boolean) {
    this.places = new Places(count, isSaturated);
  }

  ask(key: string, at = 0): void {
    if (this.places.take(key)) this.held.push(key);
    else {
      const waiter = { admit: () => void this.held.push(key), refuse: () => void this.refused.push(key) };
      if (!this.places.wait(key, waiter, at)) this.refused.push(key);
    }
  }

  end(key: string): void {
    const index = this.held.indexOf(key);
    if (index < 0) return;
    this.held.splice(index, 1);
    this.places.release(key);
  }
}

test('a newcomer finds a place although others flood, unless the flooding accounts are more than the places', () => {
  for (const [count, flooding] of [
    [512, 1],
    [512, 20],
    [128, 100],
    [8, 1],
    [8, 3],
  ] as const) {
    const load = new Load(count);
    for (let time = 0; time < count; time += 1) for (let key = 0; key < flooding; key += 1) load.ask(`flood ${key}`);
    assert.ok(load.places.take('newcomer'), `${flooding} flood ${count} places`);
  }
  assert.ok(new Places(1).take('only'), 'one place is enough for one');
});

rule('transport 19', 'with `request_too_fast` if its account holds its share while others would find a place', () => {
  const load = new Load(4);
  for (const key of ['a', 'a', 'a']) load.ask(key);
  assert.deepEqual([load.held.length, load.places.isShareUsed('a')], [2, true]);
  assert.ok(!load.places.isShareUsed('b'), 'another account has no share yet');
  load.ask('b');
  load.ask('c');
  assert.ok(!load.places.isShareUsed('a'), 'no place is left for anyone: it is the limit of the service');
  const saturated = new Load(512, () => true);
  for (let count = 0; count < 40; count += 1) saturated.ask('a');
  assert.equal(saturated.held.length, 32);
  assert.ok(!saturated.places.isShareUsed('a'), 'the processor is the bottleneck');
});

test('queues take turns, whatever their length', () => {
  const load = new Load(3);
  for (const key of ['x', 'y', 'z', 'long', 'long', 'short']) load.ask(key);
  load.end('x');
  load.end('y');
  assert.deepEqual(load.held, ['z', 'long', 'short']);
  load.end('z');
  load.end('long');
  assert.deepEqual(load.held, ['short', 'long']);
});

test('what waited too long is refused, the rest waits on', () => {
  const load = new Load(2);
  for (const [key, at] of [
    ['a', 0],
    ['b', 0],
    ['c', 1],
    ['d', 5],
  ] as const)
    load.ask(key, at);
  load.places.sweep(5);
  assert.deepEqual(load.refused, ['c']);
  load.end('a');
  assert.deepEqual(load.held, ['b', 'd']);
  assert.equal(load.places.hasWaiters, false);
});

test('while the processor is saturated a key holds a few places; afterwards what waits is admitted', () => {
  let isSaturated = true;
  const load = new Load(512, () => isSaturated);
  for (let count = 0; count < 100; count += 1) load.ask('flood');
  assert.deepEqual([load.held.length, load.refused.length], [32, 0]);
  load.ask('other');
  assert.equal(load.held.at(-1), 'other');
  load.end('flood');
  assert.equal(load.held.length, 33, 'the next of the flood takes the place');
  isSaturated = false;
  load.places.sweep(0);
  assert.equal(load.held.length, 100);
});

test('places are neither lost nor made, and nothing waits that could have one', () => {
  const step = fc.record({ key: fc.constantFrom('a', 'b', 'c', 'd'), ends: fc.boolean() });
  fc.assert(
    fc.property(fc.integer({ min: 1, max: 12 }), fc.array(step, { maxLength: 200 }), (count, steps) => {
      const load = new Load(count);
      for (const [at, { key, ends }] of steps.entries()) {
        if (ends) load.end(key);
        else load.ask(key, at);
        assert.ok(load.held.length <= count);
        // All free: whatever waits could have been admitted.
        if (load.held.length === 0) assert.equal(load.places.hasWaiters, false);
      }
      while (load.held.length > 0) load.end(load.held[0] ?? '');
      assert.equal(load.places.hasWaiters, false);
      for (let index = 0; index < count; index += 1) assert.ok(load.places.take(`new ${index}`));
      assert.equal(load.places.take('one more'), false);
    }),
  );
});

test('the network of a sender is its IPv4 address or its /64', () => {
  const networks: Record<string, string> = {
    '192.0.2.1': '192.0.2.1',
    '::ffff:192.0.2.1': '192.0.2.1',
    '2001:db8:1:2:3:4:5:6': '2001:db8:1:2:0:0:0:0',
    '2001:db8:1:2::9': '2001:db8:1:2:0:0:0:0',
    '2001:db8:1:3::9': '2001:db8:1:3:0:0:0:0',
    'fe80::1%eth0': 'fe80:0:0:0:0:0:0:0',
    'not-an-address': '',
  };
  for (const [ip, network] of Object.entries(networks)) assert.equal(networkOf(ip), network, ip);
  assert.equal(networkOf(undefined), '');
});
