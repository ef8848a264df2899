// Draws the reference from /openapi.json, so that it cannot say anything else than the routes do. Data becomes text
// nodes only, never markup: a description is no way to get a script in here.

// Relative to the page, which may be /docs or /docs/ below any prefix.
const SPEC_URL = new URL(location.pathname.endsWith('/') ? '../openapi.json' : 'openapi.json', location);
const spec = {};

function el(tag, attributes, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, value);
  node.append(...children.flat(Infinity).filter((child) => child !== undefined && child !== false));
  return node;
}

const byId = (id) => document.getElementById(id);
const code = (value) => el('code', {}, typeof value === 'string' && value !== '' ? value : JSON.stringify(value));
const capitalized = (text) => text.charAt(0).toUpperCase() + text.slice(1);

/** Paragraphs, with what stands in `backticks` set as code. */
function prose(text = '') {
  const marked = (paragraph) => paragraph.split('`').map((part, index) => (index % 2 === 1 ? code(part) : part));
  return text.split(/\n{2,}/).flatMap((paragraph) => (paragraph === '' ? [] : el('p', {}, marked(paragraph))));
}

// --- Schemas: what a value may be ---

/** A schema with its $ref and allOf merged in. */
function unfold(schema = {}) {
  const { $ref, allOf = [], ...rest } = schema;
  const own = $ref ? { ...unfold(atPointer($ref)), ...rest } : rest;
  if (allOf.length === 0) return own;
  const parts = [...allOf.map(unfold), own];
  const properties = Object.assign({}, ...parts.map((part) => part.properties));
  return Object.assign({}, ...parts, { properties, required: parts.flatMap((part) => part.required ?? []) });
}

function atPointer(pointer) {
  const keys = pointer.split('/').slice(1);
  return keys.reduce((node, key) => node?.[decodeURIComponent(key).replaceAll('~1', '/').replaceAll('~0', '~')], spec);
}

/** The alternatives, null last; most schemas are their own only one. */
function variantsOf(schema) {
  const { anyOf, oneOf = anyOf, ...own } = unfold(schema);
  const variants = oneOf?.flatMap(variantsOf) ?? [own.type].flat().map((type) => ({ ...own, type }));
  if (oneOf && own.properties) variants.unshift(own);
  return variants.sort((a, b) => (a.type === 'null') - (b.type === 'null'));
}

/** What is said about a value, be it of the whole or of one alternative. */
const overall = (schema) => Object.assign({}, ...variantsOf(schema).reverse(), unfold(schema));

const valuesOf = (variant) => variant.enum ?? ('const' in variant ? [variant.const] : []);

/** Such as string | null, or (string | integer)[]. */
const typeOf = (schema) => [...new Set(variantsOf(schema).flatMap(typesOf))].join(' | ');

function typesOf(variant) {
  if (variant.items) return `${typeOf(variant.items).replace(/^.* .*$/, '($&)')}[]`;
  const values = valuesOf(variant).map((value) => (value === null ? 'null' : typeof value));
  return variant.type ?? (values.length > 0 ? values : variant.properties ? 'object' : 'any');
}

/** All fields below a schema, as rows of a table; `above` holds the field lists that we are inside of. */
function* fieldsOf(schema, parent = '', above = []) {
  const variants = variantsOf(schema).filter((variant) => variant.items || variant.properties);
  for (const [index, { items, properties, required = [], title }] of variants.entries()) {
    const depth = above.length;
    if (variants.length > 1) yield { depth, note: title ?? `Alternative ${index + 1}` };
    if (items) yield* fieldsOf(items, `${parent.slice(0, -1)}[].`, above);
    // An allOf makes a new list each time; no real schema is that deep.
    else if (above.includes(properties) || depth > 9) yield { depth, note: 'The same fields again.' };
    else {
      for (const [name, field] of Object.entries(properties)) {
        yield { depth, parent, name, field, isSure: required.includes(name) };
        yield* fieldsOf(field, `${parent}${name}.`, [...above, properties]);
      }
    }
  }
}

// --- Field tables ---

const FACTS = /^(format|pattern|default|(min|max)(imum|Length|Items)|exclusive(Min|Max)imum)$/;
const spaced = (key) => key.replace(/[A-Z]/g, (letter) => ` ${letter.toLowerCase()}`);

function factsOf(schema, prefix = '') {
  const variants = variantsOf(schema);
  const values = new Set(variants.flatMap(valuesOf).filter((value) => value !== null));
  const facts = Object.entries(overall(schema)).filter(([key]) => FACTS.test(key));
  if (values.size > 0) facts.unshift([values.size > 1 ? 'one of' : 'always', ...values]);
  return [
    ...facts.map(([key, ...told]) => el('li', {}, prefix + spaced(key), ...told.map((value) => [' ', code(value)]))),
    ...variants.flatMap((variant) => (variant.items ? factsOf(variant.items, 'each: ') : [])),
  ];
}

/** In a request the fields that are required are labelled, in an answer those that are optional: the exceptions. */
function fieldTable(caption, rows, label) {
  const body = rows.map((row) => fieldRow(row, row.isSure === (label === 'required') && label));
  return table(caption, ['Field', 'Type', 'Description'], body);
}

function table(caption, titles, rows) {
  const head = titles.map((title) => el('th', { scope: 'col' }, title));
  return el('table', {}, el('caption', {}, caption), el('thead', {}, el('tr', {}, head)), el('tbody', {}, rows));
}

function fieldRow({ depth, note, parent = '', name = '', field }, label) {
  const cells = note
    ? el('td', { colspan: '3' }, note)
    : [
        // Nobody hears an indent: the whole path is there to be read out, its last name to be seen.
        el('th', { scope: 'row' }, el('span', {}, parent), el('code', {}, breakable(name)), ' ', mark('small', label)),
        el('td', { class: 'type' }, typeOf(field)),
        el('td', {}, prose(overall(field).description), el('ul', {}, factsOf(field))),
      ];
  const row = el('tr', {}, cells);
  // The policy forbids style attributes in markup, not properties that our own script sets.
  row.style.setProperty('--depth', depth);
  return row;
}

const mark = (tag, word) => word && el(tag, { class: word }, word);

/** Some names are longer than a phone is wide: they may break, but after an underscore. */
const breakable = (name) => name.split(/(?<=_)/).map((part) => [part, el('wbr', {})]);

function bodyPart(title, { content = {} }, label) {
  const [[mediaType, { schema } = {}] = ['no body']] = Object.entries(content);
  const shape = mediaType === 'application/json' ? typeOf(schema) : mediaType;
  const rows = [...fieldsOf(schema)];
  return [
    el('h4', {}, title, shape !== 'object' && [' ', el('span', { class: 'type' }, shape)]),
    prose(overall(schema).description),
    rows.length > 0 && fieldTable(title, rows, label),
  ];
}

const resolved = (response) => (response.$ref ? { ...atPointer(response.$ref), ...response } : response);

/** Every code of an operation, with its status and what it means. */
function errorPart(responses) {
  const known = Object.entries(responses).filter(([status]) => /^[45]/.test(status));
  const rows = known.flatMap(([status, response]) => {
    const [{ schema } = {}] = Object.values(resolved(response).content ?? {});
    return variantsOf(schema).map(({ properties = {}, description }) => {
      const name = valuesOf(unfold(properties.code ?? properties.error)).join(', ');
      const meaning = response.$ref ? resolved(response).description : description;
      const cells = [el('td', { class: 'type' }, status), el('td', {}, prose(meaning))];
      return el('tr', {}, el('th', { scope: 'row' }, el('code', {}, breakable(name))), cells);
    });
  });
  return [el('h4', {}, 'Errors'), table('Errors', ['Code', 'Status', 'Meaning'], rows)];
}

/** The first recorded example of a body. */
function recordedIn(content = {}) {
  const [{ examples = {} } = {}] = Object.values(content);
  return Object.values(examples)[0]?.value;
}

function parameterPart([place, parameters]) {
  const title = `${capitalized(place)} parameters`;
  const rows = parameters.map(({ name, schema, description = overall(schema).description, required = false }) => {
    return { depth: 0, name, field: { ...unfold(schema), description }, isSure: required };
  });
  return [el('h4', {}, title), fieldTable(title, rows, 'required')];
}

// --- The example call ---

const quoted = (text) => `'${text.replaceAll("'", "'\\''")}'`;
// X-CC-Key-ID is read from $KEY_ID: set once, and every command on the page can be pasted as it stands.
const variableOf = (header) => header.replace('X-CC-', '').replaceAll('-', '_').toUpperCase();
const serverUrl = () => new URL(spec.servers?.[0]?.url ?? '.', SPEC_URL).href.replace(/\/$/, '');

function keyHeaders(ways = spec.security ?? []) {
  const named = ways.map((way) => Object.keys(way).map((name) => spec.components.securitySchemes[name].name));
  return named.find((names) => names.every(Boolean)) ?? [];
}

function curlOf({ method, path, requestBody, security }) {
  // Left as {id}, curl would take it for a list of alternatives; recorded ids are of no use to a reader.
  const url = serverUrl() + path.replace(/\{(\w+)\}/g, (_, name) => name.toUpperCase());
  const sent = recordedIn(requestBody?.content);
  const json = sent && JSON.stringify(sent, null, 2).replaceAll('\n', '\n  ');
  return [
    `curl -sS${method === 'get' ? '' : ` -X ${method.toUpperCase()}`} ${quoted(url)}`,
    ...keyHeaders(security).map((header) => `-H "${header}: $${variableOf(header)}"`),
    ...(json ? ["-H 'Content-Type: application/json'", `-d ${quoted(json)}`] : []),
  ].join(' \\\n  ');
}

function copyable(caption, text) {
  const source = code(text);
  const button = el('button', { type: 'button', 'aria-live': 'polite' }, 'Copy');
  button.addEventListener('click', async () => {
    try {
      await navigator.clipboard.writeText(text);
      button.textContent = 'Copied';
    } catch {
      // Only a secure origin has a clipboard. Anywhere else the text is at least selected.
      getSelection().selectAllChildren(source);
      button.textContent = 'Press Ctrl+C';
    }
    setTimeout(() => button.replaceChildren('Copy'), 2_000);
  });
  return el('figure', {}, el('figcaption', {}, caption, button), el('pre', {}, source));
}

// --- The page ---

const METHODS = ['get', 'post', 'put', 'patch', 'delete'];
const shortPath = (path) => path.replace(/^\/openapi\/v\d+(?=\/)/, '');
// Without the version: other people's documents link to these.
const idOf = (method, path) => method + shortPath(path).replace(/\W+/g, '-').replace(/-$/, '');

function operations() {
  return Object.entries(spec.paths ?? {}).flatMap(([path, item]) => {
    const methods = METHODS.filter((method) => item[method]);
    return methods.map((method) => ({ id: idOf(method, path), method, path, ...item[method] }));
  });
}

const section = (id, level, title, ...content) =>
  el('section', { id }, el(level, {}, el('a', { href: `#${id}` }, title)), content);

function operationSection(operation) {
  const { id, method, path, summary = path, description, parameters = [], requestBody, responses } = operation;
  const origin = operation['x-reseal-extension'] ? 'companion' : 'specified';
  const [status, answer] = Object.entries(responses).find(([key]) => key.startsWith('2')) ?? ['200', {}];
  const answered = recordedIn(answer.content);
  return section(id, 'h3', summary, [
    el('p', { class: 'route' }, el('b', {}, method), code(path), mark('i', origin)),
    prose(description),
    [...Map.groupBy(parameters, (parameter) => parameter.in)].map(parameterPart),
    requestBody && bodyPart('Request body', requestBody, 'required'),
    copyable('Example', curlOf(operation)),
    bodyPart(`Response ${status}`, answer, 'optional'),
    answered !== undefined && copyable('Answer', JSON.stringify(answered, null, 2)),
    errorPart(responses),
  ]);
}

/** An event: what the receiver is sent. */
function eventSection([name, { post }]) {
  const sent = recordedIn(post.requestBody.content);
  return section(`event-${name.replace(/\W/g, '-')}`, 'h3', name, [
    prose(`${post.summary}\n\n${post.description}`),
    parameterPart(['header', post.parameters]),
    bodyPart('Body', post.requestBody, 'required'),
    sent !== undefined && copyable('Example', JSON.stringify(sent, null, 2)),
  ]);
}

function introduction({ title, version, description }) {
  const facts = { Server: code(serverUrl()), Version: version, Document: el('a', { href: SPEC_URL }, 'openapi.json') };
  const pairs = Object.entries(facts).map(([term, fact]) => el('div', {}, el('dt', {}, term), el('dd', {}, fact)));
  const [headers, names] = [keyHeaders(), keyHeaders().join('` and `')];
  return [
    el('h1', {}, title),
    prose(description),
    el('dl', {}, pairs),
    section('authentication', 'h2', 'Authentication', [
      prose(`A call carries \`${names}\`. Set them once in your shell, and the examples can be pasted as they stand.`),
      copyable('Your key', headers.map((header) => `export ${variableOf(header)}='…'`).join('\n')),
    ]),
  ];
}

function errorSection() {
  const [{ responses: { default: answer } = {} } = {}] = operations();
  const meaning = 'Whatever does not succeed is answered with a status other than 200, and with this body.';
  const body = answer && bodyPart('Error body', resolved(answer), 'optional');
  return body ? [section('errors', 'h2', 'Errors', prose(meaning), body)] : [];
}

function contentsGroup(title, entries) {
  const items = entries.map(([id, ...label]) => el('li', {}, el('a', { href: `#${id}` }, label)));
  return el('section', {}, el('h2', {}, title), el('ul', {}, items));
}

function contentsEntry({ id, method, path, summary = '' }) {
  return [id, el('span', { class: 'route' }, el('b', {}, method), ' ', code(shortPath(path))), ' ', summary];
}

function draw() {
  const groups = [...Map.groupBy(operations(), ({ tags = [] }) => tags[0] ?? 'other')];
  const events = Object.entries(spec.webhooks ?? {});
  const about = (tag) => spec.tags?.find(({ name }) => name === tag)?.description;
  const errors = errorSection();
  document.title = `${spec.info.title} API reference`;
  byId('content').replaceChildren(
    ...introduction(spec.info).flat(),
    ...groups.map(([tag, members]) =>
      section(`tag-${tag}`, 'h2', capitalized(tag), prose(about(tag)), members.map(operationSection)),
    ),
    section('events', 'h2', 'Events', prose(about('events')), events.map(eventSection)),
    ...errors,
  );
  const general = ['authentication', 'events', ...errors.map(({ id }) => id)].map((id) => [id, capitalized(id)]);
  byId('contents').replaceChildren(
    contentsGroup(spec.info.title, general),
    ...groups.map(([tag, members]) => contentsGroup(capitalized(tag), members.map(contentsEntry))),
  );
}

function drawFailure(error) {
  const title = el('h1', {}, 'The reference cannot be shown');
  const reason = prose(`It is drawn from \`${SPEC_URL}\`, and that could not be read: ${error.message}.`);
  const advice = el('p', {}, 'Is the service running? ', el('a', { href: '' }, 'Try again'));
  byId('content').replaceChildren(el('div', { role: 'alert' }, title, reason, advice));
}

function filterContents() {
  const words = byId('filter').value.toLowerCase().split(/\s+/);
  const contains = ({ textContent }) => words.every((word) => textContent.toLowerCase().includes(word));
  for (const entry of document.querySelectorAll('#contents li')) entry.hidden = !contains(entry);
  byId('unmatched').hidden = document.querySelector('#contents li:not([hidden])') !== null;
}

/** The entry of what is being read is marked: the one section that crosses a line near the top. */
function followReading() {
  const observer = new IntersectionObserver(
    (changes) => {
      for (const { target, isIntersecting } of changes) {
        const entry = document.querySelector(`#contents a[href="#${target.id}"]`);
        entry?.setAttribute('aria-current', isIntersecting ? 'location' : 'false');
        if (isIntersecting) entry?.scrollIntoView({ block: 'nearest' });
      }
    },
    { rootMargin: '-15% 0px -85% 0px' },
  );
  for (const part of document.querySelectorAll('main section[id]')) observer.observe(part);
}

/** On a narrow screen the contents are a menu: closed at first, and again after a choice. */
function foldMenu() {
  const wide = matchMedia('(min-width: 60rem)');
  const fold = () => byId('menu').toggleAttribute('open', wide.matches);
  wide.addEventListener('change', fold);
  byId('contents').addEventListener('click', (event) => event.target.closest('a') && fold());
  fold();
}

try {
  foldMenu();
  byId('filter').addEventListener('input', filterContents);
  const response = await fetch(SPEC_URL);
  if (!response.ok) throw new Error(`HTTP ${response.status}`);
  Object.assign(spec, await response.json());
  draw();
  followReading();
  // The browser looked for the target of the address before there was one.
  if (location.hash) location.replace(location.hash);
} catch (error) {
  drawFailure(error);
}
