// Name constraints (RFC 5280, 4.2.1.10), form by form: which names an authority may certify, and what is said otherwise.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  limitsSubject,
  type NameConstraints,
  permitsDirectoryName,
  type Subtree,
  violationOf,
} from '../../../src/domain/certificate/name-constraints.ts';
import { network } from '../../../src/domain/egress/addresses.ts';

const dns = (base: string): Subtree => ({ form: 'dns', base });
const ip = (text: string): Subtree => ({ form: 'ip', base: network(text) });
const directory = (...base: string[]): Subtree => ({ form: 'directory', base });
const permitted = (...list: Subtree[]): NameConstraints => ({ permitted: list, excluded: [] });
const excluded = (...list: Subtree[]): NameConstraints => ({ permitted: [], excluded: list });

/** What is said about one name; undefined if it may be certified. */
function said(chain: readonly NameConstraints[], names: readonly string[], holder: string | null = null) {
  const found = violationOf(chain, { names, holder });
  return found && `${found.name}: ${found.kind} ${found.constraint}`;
}

test('DNS names: labels are compared, not letters; a leading dot stands for names below', () => {
  const chain = [permitted(dns('corp.example'), dns('.below.example'))];
  const limit = 'permitted DNS:corp.example, DNS:.below.example';
  for (const name of ['corp.example', 'a.b.corp.example', '*.corp.example', 'A.CORP.example', 'a.below.example']) {
    assert.equal(said(chain, [name]), undefined, name);
  }
  for (const name of ['xcorp.example', 'corp.example.org', 'example', 'below.example', '*.example']) {
    assert.equal(said(chain, [name]), `${name}: ${limit}`);
  }
  assert.equal(said([permitted(dns(''))], ['any.example']), undefined, 'the empty name permits all');
});

test('a wildcard is refused if it stands for an excluded name', () => {
  const chain = [excluded(dns('secret.corp.example'))];
  const limit = 'excluded DNS:secret.corp.example';
  for (const name of ['secret.corp.example', 'a.secret.corp.example', '*.secret.corp.example', '*.corp.example']) {
    assert.equal(said(chain, [name]), `${name}: ${limit}`);
  }
  for (const name of ['corp.example', 'other.corp.example', '*.other.corp.example', '*.example', '*.example.corp']) {
    assert.equal(said(chain, [name]), undefined, name);
  }
});

test('constraints of every authority count, each for its own form of names', () => {
  const chain = [permitted(dns('a.example')), permitted(dns('example'), ip('10.0.0.0/8')), excluded(ip('10.9.0.0/16'))];
  assert.equal(said(chain, ['x.a.example', '10.1.2.3']), undefined);
  assert.equal(said(chain, ['b.example']), 'b.example: permitted DNS:a.example');
  assert.equal(said(chain, ['11.0.0.1']), '11.0.0.1: permitted IP:10.0.0.0/8');
  assert.equal(said(chain, ['10.9.1.1']), '10.9.1.1: excluded IP:10.9.0.0/16');
  assert.equal(said(chain, ['2001:db8::1']), '2001:db8::1: permitted IP:10.0.0.0/8');
  assert.equal(said([excluded(ip('fd12::/16'))], ['fd12::1']), 'fd12::1: excluded IP:fd12::/16');
  // An address is no DNS name, and mail is in no certificate of ours.
  assert.equal(said([permitted(dns('example'), { form: 'email', base: 'example' })], ['192.0.2.1']), undefined);
});

test('a holder is a subject, and a name if he looks like one', () => {
  const corp = [permitted(directory('C=de', 'O=corp'))];
  assert.equal(said(corp, [], 'Jane'), 'Jane: permitted DirName:C=de, O=corp');
  assert.equal(said(corp, ['www.example.com']), undefined, 'issued without a subject');
  const named = ['a.x', '10.0.0.1'];
  assert.deepEqual([limitsSubject(corp, named), limitsSubject([excluded(directory('C=de'))], named)], [true, true]);
  assert.deepEqual(
    [[permitted(dns('x'))], [excluded(dns('x'))]].map((chain) => limitsSubject(chain, named)),
    [false, false],
  );
  assert.deepEqual(
    [[permitted(dns('x'))], [permitted(ip('10.0.0.0/8'))]].map((chain) => limitsSubject(chain, ['10.0.0.1'])),
    [true, false],
  );
  assert.equal(
    said([excluded(directory('CN=jane  doe'.replace('  ', ' ')))], [], 'Jane   DOE')?.startsWith('Jane'),
    true,
  );
  assert.equal(said([permitted(dns('corp.example'))], [], 'build.example.org')?.includes('DNS:corp.example'), true);
  assert.equal(
    said([permitted(dns('corp.example'), ip('10.0.0.0/8'))], [], '10.0.0.1')?.includes('DNS:corp.example'),
    true,
  );
  assert.equal(said([permitted(dns('corp.example'))], [], 'Jane Doe'), undefined);
  assert.equal(permitsDirectoryName(corp, ['C=de', 'O=corp', 'CN=issuing']), true);
  assert.equal(permitsDirectoryName(corp, ['C=de']), false);
});
