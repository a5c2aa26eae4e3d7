/**
 * The messages on the status page, of a bridge with --inspect. This file is served behind page.browser.js, in one script, and
 * uses what that declares. Messages are paired by the rules of observe/view/pair-calls.ts, but shown while they are open.
 *
 * @typedef {import('../../../recording/recorded-message.ts').RecordedMessage} RecordedMessage
 * @typedef {{ kind: 'request', id: string, method: string, subject: string | undefined } | { kind: 'notification', method: string } | { kind: 'answer', id: string, outcome: string, code: number | undefined }} Role
 * @typedef {{ facts: RecordedMessage, atMs: number, role: Role, json: string }} Message
 * @typedef {{ key: string, number: number, messages: Message[], bytes: number, leftOut: number, element: HTMLLIElement | undefined }} Group messages of one call, or one that stands alone
 */

/** Groups that are kept, and shown. */
const MAX_GROUPS = 200;
/** Limits of what is kept of one call, which may go on for days. */
const MAX_GROUP_MESSAGES = 60;
const MAX_GROUP_LENGTH = 1024 * 1024;
/** Lines that wait while the messages are paused. */
const MAX_WAITING = 500;
/** More of a message than anybody reads makes a page slow. */
const MAX_JSON_LENGTH = 256 * 1024;
const MAX_NAME_LENGTH = 200;
/** JSON that nests deeper is indented no further. */
const MAX_INDENTED_DEPTH = 24;

/** @type {Map<string, Group>} The group that began first comes first. */
const groups = new Map();
/** @type {{ lines: string[], left: number } | undefined} What has come since the messages were paused; undefined: they are not. */
let waiting;
/** @type {AbortController | undefined} The feed that is followed now. */
let feed;
/** The latest line, by which lines are found that the bridge sends again. */
let latest = { seq: 0, at: '' };
/** Counts the runs of the bridge, in each of which calls are counted from 1. */
let runs = 0;
let groupCount = 0;
let missed = 0;
let isRenderPlanned = false;

// --- Pairing

/** @param {string} line */
function takeLine(line) {
  /** @type {RecordedMessage} */
  const facts = JSON.parse(line);
  const { seq, at } = facts;
  if (seq <= latest.seq && at <= latest.at) return;
  if (seq <= latest.seq || runs === 0) runs += 1;
  latest = { seq, at };
  // The message is the last member of a line, and no string in JSON has a bare quote.
  const json = line.slice(line.indexOf(',"message":') + ',"message":'.length, -1);
  const message = { facts, atMs: Date.parse(at), role: roleOf(facts), json };
  const group = groupOf(message);
  group.element?.removeAttribute('data-complete');
  if (group.messages.length >= MAX_GROUP_MESSAGES || group.bytes + line.length > MAX_GROUP_LENGTH) {
    // The answer says how a call ended, however much came before.
    const dropped = message.role.kind === 'answer' ? group.messages.splice(1, 1) : [message];
    group.leftOut += dropped.length;
    group.bytes -= dropped.reduce((sum, { json: { length } }) => sum + length, 0);
    if (dropped[0] === message) return;
  }
  group.messages.push(message);
  group.bytes += json.length;
}

/**
 * @param {RecordedMessage} recorded
 * @returns {Role}
 */
function roleOf({ message: { id, method, params, result, error } }) {
  const idText = JSON.stringify(id ?? null);
  if (typeof method !== 'string') {
    const { isError, resultType } = membersOf(result);
    const { code } = membersOf(error);
    const ofResult = isError === true ? 'tool-error' : resultType === 'input_required' ? 'input-required' : 'answered';
    const outcome = error === undefined ? ofResult : 'error';
    return { kind: 'answer', id: idText, outcome, code: typeof code === 'number' ? code : undefined };
  }
  if (id === undefined) return { kind: 'notification', method };
  const { name, uri } = membersOf(params);
  const subject = [name, uri].find((text) => typeof text === 'string');
  return { kind: 'request', id: idText, method, subject: typeof subject === 'string' ? subject : undefined };
}

/**
 * @param {unknown} value
 * @returns {Readonly<Record<string, unknown>>} the members of an object; of anything else none
 */
function membersOf(value) {
  return typeof value === 'object' && value !== null ? Object.fromEntries(Object.entries(value)) : {};
}

/** @param {Message} message */
function groupOf({ facts, role }) {
  const { call, side, direction, server, session } = facts;
  const numbered = call === undefined ? undefined : `${runs} ${call}`;
  if (numbered !== undefined && !isOfRequestWithoutNumber(facts, role, numbered)) return openGroup(numbered);
  if (role.kind === 'notification') return openGroup(`${runs} alone ${facts.seq}`);
  const asked = role.kind === 'request' ? direction : direction === 'in' ? 'out' : 'in';
  const key = JSON.stringify([runs, side, server, session, asked, role.id]);
  const open = groups.get(key);
  // An id that is used again begins another call.
  if (role.kind === 'request' && open !== undefined) {
    groups.delete(key);
    open.key = `${key} ${open.number}`;
    groups.set(open.key, open);
  }
  return openGroup(key);
}

/**
 * A request that the bridge makes before it knows for which call has no number, and its answer may have one.
 *
 * @param {RecordedMessage} facts
 * @param {Role} role
 * @param {string} numbered the key of the call
 */
function isOfRequestWithoutNumber(facts, role, numbered) {
  if (role.kind !== 'answer') return false;
  const message = { facts, role, atMs: 0, json: '' };
  const asks = (/** @type {Message} */ { role: asked, facts: other }) =>
    asked.kind === 'request' && isAnswerTo(message, { role: asked, facts: other });
  const { side, direction, server, session } = facts;
  const key = JSON.stringify([runs, side, server, session, direction === 'in' ? 'out' : 'in', role.id]);
  return groups.get(numbered)?.messages.some(asks) !== true && groups.has(key);
}

/** @param {string} key */
function openGroup(key) {
  const known = groups.get(key);
  if (known !== undefined) return known;
  groupCount += 1;
  /** @type {Group} */
  const group = { key, number: groupCount, messages: [], bytes: 0, leftOut: 0, element: undefined };
  groups.set(key, group);
  for (const [oldest, { element }] of groups) {
    if (groups.size <= MAX_GROUPS) break;
    groups.delete(oldest);
    element?.remove();
  }
  return group;
}

/**
 * The request with which a call began, and its answer.
 *
 * @param {Group} group
 */
function courseOf({ messages }) {
  const [first] = messages;
  const { role, facts } = first ?? {};
  const answer =
    role?.kind === 'request' && facts !== undefined
      ? messages.find((message) => isAnswerTo(message, { role, facts }))
      : messages.find((message) => message.role.kind === 'answer');
  const canceled = messages.find(
    (message) =>
      message.role.kind === 'notification' &&
      message.role.method === 'notifications/cancelled' &&
      (message.facts.side === 'client') === (message.facts.direction === 'in') &&
      messages.length > 1,
  );
  return { first, answer, canceled };
}

/**
 * @param {Message} message
 * @param {Pick<Message, 'facts'> & { role: Extract<Role, { kind: 'request' }> }} request
 */
function isAnswerTo({ role, facts }, request) {
  const { side, session, direction } = request.facts;
  return (
    role.kind === 'answer' &&
    role.id === request.role.id &&
    facts.side === side &&
    facts.session === session &&
    facts.direction !== direction
  );
}

/** @param {Group} group */
function outcomeOf(group) {
  const { first, answer, canceled } = courseOf(group);
  if (answer?.role.kind === 'answer') return { outcome: answer.role.outcome, code: answer.role.code };
  if (first?.role.kind === 'notification') return { outcome: 'notification', code: undefined };
  return { outcome: canceled === undefined ? 'open' : 'cancelled', code: undefined };
}

/**
 * Puts each message at the client's side beside the same message at the server's. Translation changes ids and payloads, so
 * twins are found by their way, their kind and their method.
 *
 * @param {readonly Message[]} messages
 * @returns {readonly (readonly [Message | undefined, Message | undefined])[]} each at the client's side, at the server's
 */
function twinsIn(messages) {
  const left = messages.filter(({ facts }) => facts.side === 'server');
  const pairs = messages.flatMap((message) => {
    if (message.facts.side === 'server') return [];
    const place = left.findIndex((other) => likeness(other, messages) === likeness(message, messages));
    const [twin] = place === -1 ? [undefined] : left.splice(place, 1);
    return [{ message, pair: /** @type {const} */ ([message, twin]) }];
  });
  const alone = left.map((message) => ({ message, pair: /** @type {const} */ ([undefined, message]) }));
  return [...pairs, ...alone]
    .sort((one, other) => one.message.facts.seq - other.message.facts.seq)
    .map(({ pair }) => pair);
}

/**
 * @param {Message} message
 * @param {readonly Message[]} messages
 */
function likeness(message, messages) {
  const { role, facts } = message;
  const isToServer = (facts.side === 'client') === (facts.direction === 'in');
  const isRequested = (/** @type {Message} */ { role: asked, facts: other }) =>
    asked.kind === 'request' && isAnswerTo(message, { role: asked, facts: other });
  const asked = role.kind === 'answer' ? messages.find(isRequested)?.role : role;
  return JSON.stringify([role.kind, isToServer, asked?.kind === 'answer' ? '' : asked?.method]);
}

// --- Showing

const MESSAGE_OUTCOMES = new Map([
  ...OUTCOMES,
  ['open', { text: '◌ open', look: 'quiet' }],
  ['input-required', { text: '● asks its client', look: 'quiet' }],
  ['notification', { text: '○ notification', look: 'quiet' }],
]);
/** Outcomes that went wrong. */
const WRONG = new Set(['tool-error', 'error', 'cancelled']);
const INVISIBLE = /(?!\n)[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}]/gu;

/**
 * Peers choose these names, and invisible characters in them could imitate others.
 *
 * @param {string} text
 */
function shownName(text) {
  return cut(
    text
      .slice(0, 2 * MAX_NAME_LENGTH)
      .replace(INVISIBLE, '')
      .replaceAll('\n', ' '),
    MAX_NAME_LENGTH,
  );
}

function planRender() {
  if (isRenderPlanned) return;
  isRenderPlanned = true;
  requestAnimationFrame(renderMessages);
}

function renderMessages() {
  isRenderPlanned = false;
  const list = byId('messages');
  const shownGroups = [...groups.values()].filter(isShownGroup).reverse();
  const wanted = new Set(shownGroups.map(({ element }) => element));
  for (const item of [...list.children]) if (item instanceof HTMLLIElement && !wanted.has(item)) item.remove();
  /** @type {Element | null} */
  let next = list.firstElementChild;
  for (const group of shownGroups) {
    const item = itemOf(group);
    if (item === next) next = item.nextElementSibling;
    else list.insertBefore(item, next);
  }
  byId('no-messages').hidden = shownGroups.length > 0;
  setText(byId('no-messages'), groups.size === 0 ? 'No messages yet.' : 'No message matches the filter.');
  showWaiting();
}

/** @param {Group} group */
function isShownGroup(group) {
  const [first] = group.messages;
  if (first === undefined) return false;
  const { server } = first.facts;
  const client = clientOf(group);
  const text = elementOf('messages-text', HTMLInputElement).value.trim().toLowerCase();
  const names = [methodOf(first), subjectOf(first) ?? ''].join(' ').toLowerCase();
  const isWanted = !elementOf('messages-wrong', HTMLInputElement).checked || WRONG.has(outcomeOf(group).outcome);
  return isOfChosenServer(server) && isChosenClient(client ?? null) && names.includes(text) && isWanted;
}

/** @param {Group} group */
function clientOf({ messages }) {
  return messages.find(({ facts }) => facts.client !== undefined)?.facts.client;
}

/** @param {Message} message */
function methodOf({ role }) {
  return role.kind === 'answer' ? 'answer without its request' : role.method;
}

/** @param {Message} message */
function subjectOf({ role }) {
  return role.kind === 'request' ? role.subject : undefined;
}

/**
 * Returns the item of a group, as it is now.
 *
 * @param {Group} group
 */
function itemOf(group) {
  const item = group.element ?? newItem(group);
  group.element = item;
  if (item.hasAttribute('data-complete')) return item;
  item.setAttribute('data-complete', '');
  const summary = item.querySelector('summary');
  if (summary !== null) fillParts(summary, summaryOfGroup(group));
  const details = item.querySelector('details');
  if (details?.open === true) fillDetails(details, group);
  return item;
}

/** @param {Group} group */
function newItem(group) {
  const item = document.createElement('li');
  const details = document.createElement('details');
  details.append(document.createElement('summary'));
  details.addEventListener('toggle', () => fillDetails(details, group));
  item.append(details);
  return item;
}

/**
 * @param {Group} group
 * @returns {readonly Part[]}
 */
function summaryOfGroup(group) {
  const { first, answer, canceled } = courseOf(group);
  if (first === undefined) return [];
  const { facts, atMs } = first;
  const subject = subjectOf(first);
  const method = shownName(methodOf(first));
  const { outcome, code } = outcomeOf(group);
  const known = MESSAGE_OUTCOMES.get(outcome) ?? { text: outcome, look: '' };
  const endMs = (answer ?? canceled)?.atMs;
  const took = endMs === undefined || answer === first ? '' : duration(Math.max(0, endMs - atMs));
  return [
    { text: timeOfDay(atMs), look: 'of-time quiet' },
    { text: subject === undefined ? method : `${shownName(subject)} · ${method}`, look: 'of-call' },
    { text: shownName(clientOf(group) ?? (facts.side === 'client' ? 'unnamed' : '–')), look: 'of-client' },
    { text: shownName(facts.server), look: 'of-server' },
    { text: code === undefined ? known.text : `${known.text} ${code}`, look: `of-outcome ${known.look}` },
    { text: took, look: 'of-took number' },
    { text: size((answer ?? first).facts.bytes), look: 'of-size number' },
  ];
}

/**
 * @param {HTMLDetailsElement} details
 * @param {Group} group
 */
function fillDetails(details, group) {
  details.querySelector('.twins')?.remove();
  if (!details.open) return;
  const twins = document.createElement('div');
  twins.className = 'twins';
  for (const [ofClient, ofServer] of twinsIn(group.messages)) {
    const pair = document.createElement('div');
    pair.className = 'pair';
    pair.append(...[ofClient, ofServer].flatMap((message) => (message === undefined ? [] : [figureOf(message)])));
    twins.append(pair);
  }
  if (group.leftOut > 0) {
    const note = document.createElement('p');
    note.className = 'quiet';
    note.textContent = `${counted(group.leftOut, 'more message')} of this call ${group.leftOut === 1 ? 'is' : 'are'} not kept.`;
    twins.append(note);
  }
  details.append(twins);
}

/** @param {Message} message */
function figureOf({ facts, atMs, json }) {
  const { seq, side, direction, era, carrier, bytes, hidden, cut: isCut } = facts;
  const way = direction === 'in' ? `${side} → bridge` : `bridge → ${side}`;
  const text = prettyJson(json);
  const figure = document.createElement('figure');
  figure.className = side === 'client' ? 'of-client-side' : 'of-server-side';
  const caption = document.createElement('figcaption');
  const words = document.createElement('span');
  const about = [
    timeOfDay(atMs),
    TRANSPORTS.get(carrier) ?? shownName(carrier),
    `${era} era`,
    size(bytes),
    ...(hidden === undefined ? [] : [`${counted(hidden, 'value')} hidden`]),
    ...(isCut === true ? ['cut'] : []),
  ];
  words.append(partElement({ text: way, look: 'name' }), partElement({ text: ` ${about.join(' · ')}`, look: 'small' }));
  const pre = document.createElement('pre');
  pre.tabIndex = 0;
  pre.setAttribute('role', 'region');
  pre.setAttribute('aria-label', `Message ${seq}, ${way}`);
  pre.textContent = cut(text, MAX_JSON_LENGTH);
  const button = document.createElement('button');
  button.type = 'button';
  button.className = 'little';
  button.textContent = 'Copy';
  button.setAttribute('aria-label', `Copy message ${seq}, ${way}`);
  button.addEventListener('click', () => void copyOrSelect(button, text, pre));
  caption.append(words, button);
  figure.append(caption, pre);
  return figure;
}

/**
 * Indents JSON without parsing it, which would change large numbers. Invisible characters become escapes.
 *
 * @param {string} json
 */
function prettyJson(json) {
  let text = '';
  let depth = 0;
  let at = 0;
  const newLine = () => `\n${'  '.repeat(Math.max(0, Math.min(depth, MAX_INDENTED_DEPTH)))}`;
  while (at < json.length && text.length < MAX_JSON_LENGTH) {
    const character = json[at] ?? '';
    let end = at + 1;
    if (character === '"') {
      while (end < json.length && json[end] !== '"') end += json[end] === '\\' ? 2 : 1;
      end += 1;
      text += json.slice(at, end);
    } else if (character === '{' || character === '[') {
      while (/\s/.test(json[end] ?? '')) end += 1;
      const isEmpty = json[end] === '}' || json[end] === ']';
      depth += isEmpty ? 0 : 1;
      text += isEmpty ? character + json[end] : character + newLine();
      end += isEmpty ? 1 : 0;
    } else if (character === '}' || character === ']') {
      depth -= 1;
      text += newLine() + character;
    } else if (character === ',') text += character + newLine();
    else if (character === ':') text += ': ';
    else if (!/\s/.test(character)) text += character;
    at = end;
  }
  return text.replace(INVISIBLE, (hidden) =>
    [...hidden].map((one) => `\\u{${(one.codePointAt(0) ?? 0).toString(16)}}`).join(''),
  );
}

// --- The feed

/** Follows the feed until it is stopped, however often it breaks. */
async function followMessages() {
  if (feed !== undefined) return;
  const controller = new AbortController();
  feed = controller;
  let retryMs = FIRST_RETRY_MS;
  while (!controller.signal.aborted) {
    await readStream('status/messages', controller.signal, (event) => {
      retryMs = FIRST_RETRY_MS;
      takeMessageEvent(event);
    });
    if (controller.signal.aborted) return;
    await new Promise((resolve) => setTimeout(resolve, retryMs));
    retryMs = Math.min(MAX_RETRY_MS, retryMs * 2);
  }
}

function stopMessages() {
  feed?.abort();
  feed = undefined;
}

/** @param {string} event */
function takeMessageEvent(event) {
  const [type = '', data = ''] = event.split('\n');
  const text = data.slice('data: '.length);
  if (type === 'event: dropped') missed += JSON.parse(text).messages;
  if (type === 'event: message' && waiting === undefined) takeLine(text);
  if (type === 'event: message' && waiting !== undefined) {
    waiting.lines.push(text);
    if (waiting.lines.length > MAX_WAITING) {
      waiting.lines.shift();
      waiting.left += 1;
    }
    return showWaiting();
  }
  planRender();
}

function showWaiting() {
  const button = byId('messages-pause');
  button.setAttribute('aria-pressed', String(waiting !== undefined));
  const count = waiting?.lines.length ?? 0;
  const many = (waiting?.left ?? 0) > 0 ? `${MAX_WAITING}+` : String(count);
  setText(button, waiting === undefined ? 'Pause messages' : count === 0 ? 'Resume messages' : `Resume (${many} new)`);
  const notes = [
    current?.replicas ? 'Of the replica that answers.' : '',
    missed === 0 ? '' : `${counted(missed, 'message')} came faster than this page could read them.`,
  ].filter((note) => note !== '');
  setText(byId('messages-note'), notes.join(' '));
  byId('messages-note').hidden = notes.length === 0;
}

byId('messages-pause').addEventListener('click', () => {
  const held = waiting;
  waiting = held === undefined ? { lines: [], left: 0 } : undefined;
  for (const line of held?.lines ?? []) takeLine(line);
  missed += held?.left ?? 0;
  planRender();
  showWaiting();
});

for (const [id, type] of /** @type {const} */ ([
  ['messages-text', 'input'],
  ['messages-wrong', 'change'],
]))
  byId(id).addEventListener(type, planRender);

document.addEventListener('choice', planRender);

// The page says in this attribute how it stands with its bridge, and the messages follow.
new MutationObserver(() => {
  const { connection } = document.body.dataset;
  if (connection === 'live' && !document.hidden) void followMessages();
  if (connection === 'paused' || connection === 'locked') stopMessages();
}).observe(document.body, { attributes: true, attributeFilter: ['data-connection'] });

document.addEventListener('visibilitychange', () => {
  if (document.hidden) stopMessages();
  else if (document.body.dataset.connection === 'live') void followMessages();
});

setText(
  byId('privacy'),
  'This bridge shows messages, since it was started with --inspect; what is likely to be secret in them is hidden. For programs: ',
);
