/**
 * The status page. It follows the event stream of the bridge with fetch(), since a browser's EventSource cannot send a
 * token. Names and texts come from peers that nobody trusts, so they are set as text and never as markup.
 *
 * @typedef {import('../status-document.ts').StatusDocument} StatusDocument
 * @typedef {import('../status-document.ts').ServerStatus} ServerStatus
 * @typedef {import('../status-document.ts').ServerDetail} ServerDetail
 * @typedef {import('../status-document.ts').ClientStatus} ClientStatus
 * @typedef {import('../status-document.ts').OpenCall} OpenCall
 * @typedef {import('../status-document.ts').EndedCall} EndedCall
 * @typedef {import('../status-document.ts').UsageStatusRow} UsageStatusRow
 * @typedef {import('../call-series.ts').SeriesReport} SeriesReport
 * @typedef {Readonly<Record<string, string | null>>} Choice names in the address, and what they are set to; null: nothing
 * @typedef {{ text: string, look?: string, to?: Choice }} TextPart
 * @typedef {TextPart | { spark: readonly number[], label: string } | { copy: string, label: string }} Part
 * @typedef {{ parts: readonly Part[], look?: string }} Cell
 * @typedef {{ ticks: readonly number[], labelOf: (value: number) => string, shareOf: (value: number) => number }} Axis
 * @typedef {{ x: (place: number) => number, y: (value: number) => number, step: number }} Places
 * @typedef {{ id: string, series: SeriesReport, axis: Axis, description: string, draw: (places: Places) => readonly Element[], valueAt: (place: number) => string }} Chart
 * @typedef {{ transport: string, era?: string, revision: string | null }} Spoken
 */

const TOKEN_KEY = 'mcp-portage-status-token';
const THEME_KEY = 'mcp-portage-theme';
const FIRST_RETRY_MS = 1000;
const MAX_RETRY_MS = 15_000;
/** The bridge sends a comment every 15 s. */
const SILENCE_MS = 40_000;
/** A larger event is no status. */
const MAX_EVENT_LENGTH = 32 * 1024 * 1024;
/** The axis of time moves on even if nothing happens. */
const REDRAW_MS = 5000;
const FEW_CALLS = 15;
const FEW_CLIENTS = 8;
const MAX_ALERTS = 5;

/** @type {StatusDocument | undefined} */
let current;
/** Time by which the bridge's clock is ahead of the browser's. */
let aheadMs = 0;
let isPaused = false;
let showsAllCalls = false;
let showsAllClients = false;
/** Number of servers that cannot be used. */
let troubles = 0;
/** @type {AbortController | undefined} The stream that is followed now. */
let following;
/** The address of that stream. */
let followed = '';
/** @type {ReadonlyMap<string, string>} The states of servers that have been shown. */
let knownStates = new Map();

// --- Elements

/** @param {string} id */
function byId(id) {
  const found = document.getElementById(id);
  if (found === null) throw new Error(`The page has no #${id}.`);
  return found;
}

/**
 * @template {HTMLElement} Kind
 * @param {string} id
 * @param {new () => Kind} kind
 */
function elementOf(id, kind) {
  const found = byId(id);
  if (!(found instanceof kind)) throw new Error(`#${id} is no ${kind.name}.`);
  return found;
}

/**
 * Sets a text, but skips one that is unchanged, so that a selection in it stays.
 *
 * @param {Element} element
 * @param {string} text
 */
function setText(element, text) {
  if (element.textContent !== text) element.textContent = text;
}

/**
 * @param {string} name
 * @param {Readonly<Record<string, string | number>>} attributes
 */
function svgElement(name, attributes) {
  const element = document.createElementNS('http://www.w3.org/2000/svg', name);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, String(value));
  return element;
}

/** @param {string} text */
function announce(text) {
  byId('announcement').textContent = text;
}

// --- Words

const TRANSPORTS = new Map([
  ['stdio', 'stdio'],
  ['byte-stream', 'byte stream'],
  ['websocket', 'WebSocket'],
  ['grpc', 'gRPC'],
  ['mqtt', 'MQTT'],
  ['streamable-http', 'Streamable HTTP'],
  ['http-sse', 'HTTP+SSE'],
  ['aggregate', 'the aggregate'],
]);

/** @param {Spoken | null} spoken */
function speech(spoken) {
  if (spoken === null) return [{ text: 'not known yet', look: 'small' }];
  const parts = [{ text: TRANSPORTS.get(spoken.transport) ?? spoken.transport, look: 'line' }];
  if (spoken.revision !== null) parts.push({ text: spoken.revision, look: 'line small' });
  else if (spoken.era !== undefined) parts.push({ text: `${spoken.era} era`, look: 'line small' });
  return parts;
}

/**
 * @param {string | null} name
 * @param {string | null} version
 */
function clientName(name, version) {
  const parts = [{ text: name ?? 'unnamed', look: name === null ? 'small' : '' }];
  if (version !== null) parts.push({ text: ` ${version}`, look: 'small' });
  return parts;
}

/** @param {number | null} ms */
function duration(ms) {
  if (ms === null) return '–';
  if (ms < 1000) return `${ms < 10 ? Math.round(ms * 10) / 10 : Math.round(ms)} ms`;
  if (ms < 60_000) return `${(ms / 1000).toFixed(1)} s`;
  const minutes = Math.floor(ms / 60_000);
  if (minutes < 60) return `${minutes} min`;
  const hours = Math.floor(minutes / 60);
  return hours < 48 ? `${hours} h ${minutes % 60} min` : `${Math.floor(hours / 24)} days`;
}

/** @param {number} bytes */
function size(bytes) {
  if (bytes < 1000) return `${bytes} B`;
  return bytes < 1_000_000 ? `${(bytes / 1000).toFixed(1)} kB` : `${(bytes / 1_000_000).toFixed(1)} MB`;
}

/** @param {number} sinceMs */
function ago(sinceMs) {
  const ms = Math.max(0, nowMs() - sinceMs);
  return ms < 60_000 ? 'less than a minute' : duration(ms);
}

/** @param {number} atMs */
function timeOfDay(atMs) {
  return new Date(atMs).toLocaleTimeString([], {
    hour: '2-digit',
    minute: '2-digit',
    second: '2-digit',
    hourCycle: 'h23',
  });
}

/**
 * A time within a day, or a day and a time.
 *
 * @param {number} atMs
 */
function moment(atMs) {
  if (Math.abs(nowMs() - atMs) < 20 * 3_600_000) return timeOfDay(atMs);
  const day = new Date(atMs).toLocaleDateString([], { year: 'numeric', month: 'short', day: 'numeric' });
  return `${day}, ${timeOfDay(atMs)}`;
}

/**
 * @param {string} text
 * @param {number} length
 */
function cut(text, length) {
  return text.length <= length ? text : `${text.slice(0, length)}…`;
}

/**
 * @param {number} count
 * @param {string} one
 * @param {string} [many]
 */
function counted(count, one, many = `${one}s`) {
  return `${count} ${count === 1 ? one : many}`;
}

/** @returns the time by the clock of the bridge */
function nowMs() {
  return Date.now() + aheadMs;
}

// --- Tables

/** @type {WeakMap<Element, string>} The content that each element showed last. */
const shown = new WeakMap();

/**
 * Makes the body of a table show the items, one in each row. Rows of items that stay are kept.
 *
 * @template Item
 * @param {string} id
 * @param {readonly Item[]} items
 * @param {(item: Item) => string} keyOf
 * @param {(item: Item) => readonly Cell[]} cellsOf
 */
function fillTable(id, items, keyOf, cellsOf) {
  const table = elementOf(id, HTMLTableElement);
  const body = table.tBodies[0];
  if (body === undefined) return;
  const labels = [...table.querySelectorAll('thead th')].map(({ textContent }) => textContent ?? '');
  const left = new Map([...body.rows].map((row) => [row.dataset.key ?? '', row]));
  /** @type {Element | null} */
  let next = body.firstElementChild;
  for (const item of items) {
    const key = keyOf(item);
    const row = left.get(key) ?? newRow(key);
    left.delete(key);
    for (const [place, cell] of cellsOf(item).entries()) fillCell(row, place, labels[place] ?? '', cell);
    if (row === next) next = row.nextElementSibling;
    else body.insertBefore(row, next);
  }
  for (const row of left.values()) row.remove();
  table.hidden = items.length === 0;
  const empty = table.parentElement?.querySelector('.empty');
  if (empty instanceof HTMLElement) empty.hidden = items.length > 0;
}

/** @param {string} key */
function newRow(key) {
  const row = document.createElement('tr');
  row.dataset.key = key;
  // On a phone a table is laid out as cards; without the roles it would be read as text without an order.
  row.setAttribute('role', 'row');
  return row;
}

/**
 * @param {HTMLTableRowElement} row
 * @param {number} place
 * @param {string} label
 * @param {Cell} cell
 */
function fillCell(row, place, label, { parts, look = '' }) {
  const cell = row.cells[place] ?? row.appendChild(newCell(place, label));
  const content = JSON.stringify([parts, look]);
  if (shown.get(cell) === content) return;
  shown.set(cell, content);
  cell.className = look;
  cell.replaceChildren(...parts.map(partElement));
}

/**
 * @param {HTMLElement} element
 * @param {readonly Part[]} parts
 */
function fillParts(element, parts) {
  const content = JSON.stringify(parts);
  if (shown.get(element) === content) return;
  shown.set(element, content);
  element.replaceChildren(...parts.map(partElement));
}

/**
 * Makes a list show the items. Unchanged items are kept.
 *
 * @param {string} id
 * @param {readonly (readonly Part[])[]} items
 */
function fillList(id, items) {
  const list = byId(id);
  while (list.children.length > items.length) list.lastElementChild?.remove();
  for (const [place, parts] of items.entries()) {
    const item = list.children[place] ?? list.appendChild(document.createElement('li'));
    if (item instanceof HTMLElement) fillParts(item, parts);
  }
}

/**
 * @param {number} place
 * @param {string} label
 */
function newCell(place, label) {
  const cell = document.createElement(place === 0 ? 'th' : 'td');
  cell.setAttribute('role', place === 0 ? 'rowheader' : 'cell');
  if (place === 0) cell.setAttribute('scope', 'row');
  cell.dataset.label = label;
  return cell;
}

/** @param {Part} part */
function partElement(part) {
  if ('spark' in part) return sparkline(part.spark, part.label);
  if ('copy' in part) return copyButton(part.copy, part.label);
  const span = part.to === undefined ? document.createElement('span') : linkTo(part.to);
  if (part.look !== undefined) span.className = part.look;
  span.textContent = part.text;
  return span;
}

/** @param {Choice} choice */
function linkTo(choice) {
  const link = document.createElement('a');
  link.href = addressWith(choice);
  link.addEventListener('click', (event) => {
    // A click with a key opens another tab.
    if (event.ctrlKey || event.metaKey || event.shiftKey || event.altKey) return;
    event.preventDefault();
    choose(choice);
  });
  return link;
}

/**
 * @param {string} text
 * @param {string} description
 */
function copyButton(text, description) {
  const button = document.createElement('button');
  button.type = 'button';
  button.className = 'little';
  button.textContent = 'Copy';
  button.setAttribute('aria-label', description);
  button.addEventListener('click', () => void copyOrSelect(button, text, button.previousElementSibling));
  return button;
}

/**
 * @param {string} text
 * @param {string} [look]
 * @returns {Cell}
 */
function textCell(text, look) {
  return look === undefined ? { parts: [{ text }] } : { parts: [{ text }], look };
}

// --- Charts

/**
 * Puts the steps of a series, of which those without calls are left out, at their places, the oldest first.
 *
 * @param {SeriesReport} series
 * @param {readonly number[]} values
 * @returns {readonly number[]} NaN where there were no calls
 */
function spread({ atMs, stepMs, steps }, values) {
  const all = new Array(steps).fill(Number.NaN);
  for (const [index, startMs] of atMs.entries()) {
    const place = placeOf(startMs, { stepMs, steps });
    if (place >= 0 && place < steps) all[place] = values[index];
  }
  return all;
}

/**
 * The place of a step in a chart, which ends now.
 *
 * @param {number} startMs
 * @param {Pick<SeriesReport, 'stepMs' | 'steps'>} series
 */
function placeOf(startMs, { stepMs, steps }) {
  return steps - 1 - (Math.floor(nowMs() / stepMs) - Math.round(startMs / stepMs));
}

/** @param {readonly number[]} values */
function largest(values) {
  return values.reduce((most, value) => (value > most ? value : most), 0);
}

/**
 * An axis from 0 to the next number above that reads well and can be halved.
 *
 * @param {number} most
 * @returns {Axis}
 */
function linearAxis(most) {
  const power = 10 ** Math.floor(Math.log10(Math.max(1, most)));
  const limit = most <= 2 ? 2 : ([1, 2, 4, 6, 8, 10].find((step) => step * power >= most) ?? 10) * power;
  return { ticks: [0, limit / 2, limit], labelOf: String, shareOf: (value) => value / limit };
}

/** Marks of an axis of durations, in milliseconds. */
const DURATION_TICKS = [0.1, 1, 10, 100, 1000, 10_000, 60_000, 600_000, 3_600_000, 36_000_000];

/**
 * A logarithmic axis, on which one call of a minute leaves calls of milliseconds readable.
 *
 * @param {readonly number[]} values
 * @returns {Axis}
 */
function durationAxis(values) {
  const known = values.filter((value) => !Number.isNaN(value));
  const least = known.length === 0 ? 1 : Math.min(...known);
  const most = known.length === 0 ? 100 : Math.max(...known);
  const first = Math.max(
    0,
    DURATION_TICKS.findLastIndex((tick) => tick <= least),
  );
  const found = DURATION_TICKS.findIndex((tick) => tick >= most);
  const last = Math.max(first + 1, found < 0 ? DURATION_TICKS.length - 1 : found);
  const ticks = DURATION_TICKS.slice(first, last + 1);
  const [low = 1, high = 10] = [ticks[0], ticks.at(-1)];
  const shareOf = (/** @type {number} */ value) =>
    Math.min(1, Math.log(Math.max(value, low) / low) / Math.log(high / low));
  return { ticks, labelOf: (value) => duration(value).replace('.0 ', ' '), shareOf };
}

const CHART = { height: 150, top: 8, bottom: 22, left: 48 };
const CHARTS = ['chart-calls', 'chart-latency'];

/**
 * Draws the axes, and between them the elements that `draw` returns. Below the chart, `valueAt` says what it shows at the
 * place at which somebody points.
 *
 * @param {Chart} chart
 */
function drawChart({ id, series, axis, description, draw, valueAt }) {
  const svg = byId(id);
  // An image that is not shown has no width.
  const width = Math.max(240, svg.getBoundingClientRect().width);
  const { height, top, bottom, left } = CHART;
  const { steps, stepMs } = series;
  const step = (width - left) / steps;
  const x = (/** @type {number} */ place) => left + place * step;
  const y = (/** @type {number} */ value) => height - bottom - axis.shareOf(value) * (height - bottom - top);
  const lines = axis.ticks.flatMap((value) => [
    svgElement('line', { class: 'grid', x1: left, x2: width, y1: y(value), y2: y(value) }),
    label(axis.labelOf(value), { x: left - 8, y: y(value) + 4, 'text-anchor': 'end' }),
  ]);
  const times = [
    label('10 min ago', { x: left, y: height - 4 }),
    label('5 min', { x: x(steps / 2), y: height - 4, 'text-anchor': 'middle' }),
    label('now', { x: width, y: height - 4, 'text-anchor': 'end' }),
  ];
  const place = pointedMs === undefined ? -1 : placeOf(pointedMs, series);
  const isPointed = place >= 0 && place < steps;
  const middle = x(place + 0.5);
  const pointer = isPointed
    ? [svgElement('line', { class: 'pointer', x1: middle, x2: middle, y1: top, y2: height - bottom })]
    : [];
  svg.setAttribute('viewBox', `0 0 ${width} ${height}`);
  svg.setAttribute('height', String(height));
  svg.setAttribute('aria-label', description);
  svg.replaceChildren(...lines, ...times, ...draw({ x, y, step }), ...pointer);
  const atMs = (Math.floor(nowMs() / stepMs) - (steps - 1 - place)) * stepMs;
  setText(byId(`${id}-value`), isPointed ? `${timeOfDay(atMs)}: ${valueAt(place)}` : POINTING);
}

const POINTING = 'Point at the chart, or press the arrow keys on it, to read its values.';

/** @type {number | undefined} The time at which somebody points in the charts. */
let pointedMs;

/**
 * @param {SVGElement} svg
 * @param {number} clientX
 */
function pointAt(svg, clientX) {
  const series = shownSeries();
  if (series === undefined) return;
  const { left: start, width } = svg.getBoundingClientRect();
  const { steps, stepMs } = series;
  const share = (clientX - start - CHART.left) / (width - CHART.left);
  const place = Math.min(steps - 1, Math.max(0, Math.floor(share * steps)));
  pointedMs = (Math.floor(nowMs() / stepMs) - (steps - 1 - place)) * stepMs;
  drawCharts();
}

function stopPointing() {
  pointedMs = undefined;
  drawCharts();
}

/**
 * Moves the place at which the charts are read.
 *
 * @param {string} chart
 * @param {string} key
 * @returns {boolean} false: the key does nothing here
 */
function pointByKey(chart, key) {
  const series = shownSeries();
  const move = new Map([
    ['ArrowLeft', -1],
    ['ArrowRight', 1],
    ['Home', Number.NEGATIVE_INFINITY],
    ['End', Number.POSITIVE_INFINITY],
  ]).get(key);
  if (series === undefined || (move === undefined && key !== 'Escape')) return false;
  const { steps, stepMs } = series;
  const latest = Math.floor(nowMs() / stepMs);
  const place = pointedMs === undefined ? steps : placeOf(pointedMs, series);
  const moved = Math.min(steps - 1, Math.max(0, place + (move ?? 0)));
  pointedMs = move === undefined ? undefined : (latest - (steps - 1 - moved)) * stepMs;
  drawCharts();
  if (pointedMs !== undefined) announce(byId(`${chart}-value`).textContent ?? '');
  return true;
}

/**
 * @param {string} text
 * @param {Readonly<Record<string, string | number>>} attributes
 */
function label(text, attributes) {
  const element = svgElement('text', attributes);
  element.textContent = text;
  return element;
}

/** The series that the charts show. */
function shownSeries() {
  return (chosenServer() ?? current?.calls)?.series;
}

function drawCharts() {
  const series = shownSeries();
  if (series === undefined) return;
  const server = chosen('server');
  const ofServer = server === null ? '' : ` of ${server}`;
  setText(byId('chart-calls-title'), `Calls${ofServer}`);
  setText(byId('chart-latency-title'), `Latency${ofServer}`);
  drawCalls(series);
  drawLatency(series);
}

/** @param {SeriesReport} series */
function drawCalls(series) {
  const calls = spread(series, series.calls);
  const errors = spread(series, series.errors);
  drawChart({
    id: 'chart-calls',
    series,
    axis: linearAxis(largest(calls)),
    description: `Calls in the last ten minutes: ${sum(series.calls)}, of which ${sum(series.errors)} with an error; at most ${largest(calls)} in ${series.stepMs / 1000} seconds.`,
    draw: ({ x, y, step }) =>
      calls.flatMap((count, place) => {
        if (Number.isNaN(count)) return [];
        const wrong = errors[place] ?? 0;
        return [
          bar('calls', x(place), y(count), y(wrong), step),
          ...(wrong > 0 ? [bar('errors', x(place), y(wrong), y(0), step)] : []),
        ];
      }),
    valueAt: (place) => {
      const count = calls[place] || 0;
      return count === 0 ? 'no calls' : `${counted(count, 'call')}, ${errors[place] || 0} with an error`;
    },
  });
}

/** @param {SeriesReport} series */
function drawLatency(series) {
  const p50 = spread(series, series.p50Ms);
  const p95 = spread(series, series.p95Ms);
  drawChart({
    id: 'chart-latency',
    series,
    axis: durationAxis([...p50, ...p95]),
    description:
      series.calls.length === 0
        ? 'Latency: no calls in the last ten minutes.'
        : `Latency in the last ten minutes: the median of five seconds was at most ${duration(largest(p50))}, the 95th percentile at most ${duration(largest(p95))}.`,
    draw: ({ x, y, step }) => [line('p95', p95, x, y, step), line('p50', p50, x, y, step)],
    valueAt: (place) => {
      const [median = Number.NaN, high = Number.NaN] = [p50[place], p95[place]];
      return Number.isNaN(median) ? 'no calls' : `median ${duration(median)}, 95th percentile ${duration(high)}`;
    },
  });
}

/**
 * @param {string} look
 * @param {number} left
 * @param {number} top
 * @param {number} bottom
 * @param {number} step
 */
function bar(look, left, top, bottom, step) {
  const width = Math.max(1, step - 1);
  return svgElement('rect', { class: look, x: left, y: top, width, height: Math.max(0, bottom - top) });
}

/**
 * A line through the values, broken where there were no calls for longer than a minute.
 *
 * @param {string} look
 * @param {readonly number[]} values
 * @param {(place: number) => number} x
 * @param {(value: number) => number} y
 * @param {number} step
 */
function line(look, values, x, y, step) {
  let path = '';
  let last = Number.NEGATIVE_INFINITY;
  for (const [place, value] of values.entries()) {
    if (Number.isNaN(value)) continue;
    const middle = (x(place) + step / 2).toFixed(1);
    // A point that stands alone is a line of no length with round ends.
    path += place - last > 12 ? `M${middle} ${y(value).toFixed(1)}h0` : `L${middle} ${y(value).toFixed(1)}`;
    last = place;
  }
  return svgElement('path', { class: look, d: path });
}

/**
 * @param {readonly number[]} values
 * @param {string} description
 */
function sparkline(values, description) {
  const width = 120;
  const height = 24;
  const most = Math.max(1, largest(values));
  const svg = svgElement('svg', { class: 'spark', role: 'img', 'aria-label': description, viewBox: '0 0 120 24' });
  svg.append(svgElement('line', { class: 'grid', x1: 0, x2: width, y1: height - 0.5, y2: height - 0.5 }));
  const step = width / values.length;
  for (const [place, value] of values.entries()) {
    if (!(value > 0)) continue;
    const tall = Math.max(2, (value / most) * (height - 2));
    svg.append(bar('calls', place * step, height - tall, height, step));
  }
  return svg;
}

/** @param {readonly number[]} values */
function sum(values) {
  return values.reduce((total, value) => total + value, 0);
}

/**
 * Sums up two steps each: a small chart has one bar for ten seconds.
 *
 * @param {readonly number[]} values
 */
function inPairs(values) {
  return values.flatMap((value, place) => (place % 2 === 0 ? [(value || 0) + (values[place + 1] || 0)] : []));
}

// --- What the address chooses

/** The filters of the page are in its address, so that it can be sent to somebody else. */
const FILTERS = ['server', 'client', 'tool'];
/** Clients that give no name can be chosen by this one. */
const UNNAMED = 'unnamed';

/** @param {string} name */
function chosen(name) {
  return new URLSearchParams(location.search).get(name);
}

/** @param {Choice} choice */
function addressWith(choice) {
  const address = new URL(location.href);
  for (const [name, value] of Object.entries(choice)) {
    if (value === null) address.searchParams.delete(name);
    else address.searchParams.set(name, value);
  }
  return address.href;
}

/** @param {Choice} choice */
function choose(choice) {
  history.pushState(null, '', addressWith(choice));
  if ('server' in choice) scrollTo(0, 0);
  showChoice();
}

/** Shows what the address chooses now. The stream also has more about the chosen server, so it may be another one. */
function showChoice() {
  document.dispatchEvent(new Event('choice'));
  if (!isPaused && byId('token').hidden && followed !== streamAddress()) void follow();
  render();
}

/** @returns the server that is chosen, or the only one */
function chosenServer() {
  const name = chosen('server');
  const servers = current?.servers ?? [];
  return name === null && servers.length === 1 ? servers[0] : servers.find((server) => server.name === name);
}

/** @param {string} server */
function isOfChosenServer(server) {
  return (chosen('server') ?? server) === server;
}

/** @param {string | null} client */
function isChosenClient(client) {
  const wanted = chosen('client');
  return wanted === null || wanted === (client ?? UNNAMED);
}

/** @param {OpenCall} call */
function isChosenCall({ server, client, tool }) {
  return isOfChosenServer(server) && isChosenClient(client) && (chosen('tool') ?? tool) === tool;
}

/** @param {StatusDocument} document */
function renderFilters({ servers, clients, calls, detail }) {
  const all = [...calls.recent, ...calls.longestOpen].filter(({ server }) => isOfChosenServer(server));
  const ofServer = clients.filter(({ server }) => isOfChosenServer(server));
  fillFilter(
    'server',
    'all servers',
    servers.map(({ name }) => name),
  );
  fillFilter(
    'client',
    'all clients',
    [...ofServer.map(({ name }) => name), ...all.map(({ client }) => client)].map((name) => name ?? UNNAMED),
  );
  fillFilter('tool', 'all tools', [...(detail?.tools ?? []), ...all.flatMap(({ tool }) => tool ?? [])]);
  byId('clear-filters').hidden = FILTERS.every((name) => chosen(name) === null);
  byId('filter-note').hidden = chosen('client') === null && chosen('tool') === null;
  elementOf('only-errors', HTMLInputElement).checked = chosen('calls') === 'wrong';
}

/** A longer name would make its list wider than a phone. */
const MAX_OPTION_LENGTH = 48;

/**
 * @param {string} name
 * @param {string} ofAll
 * @param {readonly string[]} values
 */
function fillFilter(name, ofAll, values) {
  const select = elementOf(`filter-${name}`, HTMLSelectElement);
  const value = chosen(name);
  const names = [...new Set(value === null ? values : [...values, value])].sort();
  const content = JSON.stringify(names);
  if (shown.get(select) !== content) {
    shown.set(select, content);
    const options = names.map((text) => new Option(cut(text, MAX_OPTION_LENGTH), text));
    select.replaceChildren(new Option(ofAll, ''), ...options);
  }
  select.value = value ?? '';
}

// --- The parts of the page

/** @param {StatusDocument} document */
function renderFigures({ bridge, servers, clients, moreClients, calls, refused }) {
  const server = chosenServer();
  const { lastMinute } = server ?? calls;
  const ofServer = clients.filter((client) => isOfChosenServer(client.server));
  figure('servers', String(servers.length), troublesIn(servers) === 0 ? '' : `${troublesIn(servers)} failing`);
  figure('clients', String(chosen('server') === null ? clients.length + moreClients : ofServer.length), '');
  figure('open', String(server?.openCalls ?? calls.open), `of ${bridge.maxOpenCalls}`);
  figure('processes', String(server?.processes ?? bridge.processes), `of ${bridge.maxProcesses}`);
  figure('calls', String(lastMinute.calls), '');
  const share = lastMinute.calls === 0 ? 0 : (100 * lastMinute.errors) / lastMinute.calls;
  figure(
    'errors',
    String(lastMinute.errors),
    lastMinute.errors === 0 ? '' : `${share < 1 ? '< 1' : Math.round(share)} %`,
  );
  figure('refused', String(refused.lastHour), `${refused.total} since the start`);
  figure(
    'latency',
    duration(lastMinute.p50Ms),
    lastMinute.p95Ms === null ? '' : `95 % ≤ ${duration(lastMinute.p95Ms)}`,
  );
  setText(byId('about'), `${bridge.version} · up ${ago(bridge.startedAtMs)}`);
}

/**
 * @param {string} name
 * @param {string} value
 * @param {string} more
 */
function figure(name, value, more) {
  const element = byId(`figure-${name}`);
  const content = `${value} ${more}`;
  if (shown.get(element) === content) return;
  shown.set(element, content);
  element.replaceChildren(value);
  if (more === '') return;
  const small = document.createElement('small');
  small.textContent = more;
  element.append(small);
}

/** A mark besides the color, for readers who cannot see colors. */
const STATES = new Map([
  ['not-started', { text: '○ not started', look: 'line' }],
  ['starting', { text: '◌ starting', look: 'line warn' }],
  ['ready', { text: '● ready', look: 'line good' }],
  ['failing', { text: '▲ failing', look: 'line bad' }],
  ['stopped', { text: '✕ stopped after failures', look: 'line bad' }],
]);

/**
 * The state of a server, with how long a start has taken, or since when the server fails.
 *
 * @param {Pick<ServerStatus, 'state' | 'sinceMs'>} server
 */
function stateOf({ state, sinceMs }) {
  const known = STATES.get(state) ?? { text: state, look: 'line' };
  if (sinceMs === null) return known;
  if (state === 'starting') return { ...known, text: `${known.text} (${duration(nowMs() - sinceMs)})` };
  return { ...known, text: `${known.text}${state === 'failing' ? '' : ','} since ${moment(sinceMs)}` };
}

/** Limit of a server's problem text, whose cell would otherwise get very tall. `/status.json` has the whole text. */
const MAX_PROBLEM_LENGTH = 240;

/** @param {Pick<ServerStatus, 'url' | 'sseUrl' | 'wsUrl'>} server */
function urlsOf({ url, sseUrl, wsUrl }) {
  return [url, sseUrl, wsUrl].filter((known) => known !== null);
}

/**
 * Returns notices about the addresses of a server: the announced end of HTTP+SSE, and the state of each hub.
 *
 * @param {Pick<ServerStatus, 'kind' | 'sseSunset' | 'hubs'>} server
 */
function noticesOf({ kind, sseSunset, hubs }) {
  const ofHubs = hubs.map(({ url, state, problem }) => ({
    text: state === 'connected' ? `at ${url}` : `calling ${url}${problem === null ? '' : `: ${problem}`}`,
    look: state === 'connected' ? 'line small' : 'line small warn',
  }));
  return [
    ...(kind === 'aggregate' ? [{ text: 'several servers as one', look: 'line small' }] : []),
    ...(sseSunset === null ? [] : [{ text: `HTTP+SSE ends: ${sseSunset}`, look: 'line small warn' }]),
    ...ofHubs,
  ];
}

/** @param {ServerStatus} server */
function serverCells({ series, lastMinute, ...server }) {
  const state = [stateOf(server)];
  if (server.problem !== null) state.push({ text: cut(server.problem, MAX_PROBLEM_LENGTH), look: 'line small' });
  const addresses = urlsOf(server).map((text) => ({ text, look: 'line small' }));
  const errors = lastMinute.errors === 0 ? [] : [{ text: counted(lastMinute.errors, 'error'), look: 'line bad' }];
  const total = sum(series.calls);
  return [
    { parts: [{ text: server.name, look: 'line', to: { server: server.name } }, ...addresses, ...noticesOf(server)] },
    { parts: state, look: server.problem === null ? '' : 'wide' },
    { parts: speech(server.speaks), look: 'of-speech' },
    textCell(String(server.sessions), 'number'),
    textCell(String(server.openCalls), 'number'),
    textCell(String(server.processes), 'number'),
    textCell(String(server.restarts), 'number'),
    {
      parts: [
        { text: counted(lastMinute.calls, 'call'), look: 'line' },
        ...errors,
        ...(lastMinute.p50Ms === null ? [] : [{ text: duration(lastMinute.p50Ms), look: 'line small' }]),
      ],
      look: 'number',
    },
    {
      parts: [
        {
          spark: inPairs(spread(series, series.calls)),
          label: `${counted(total, 'call')} in the last ten minutes`,
        },
      ],
    },
  ];
}

/** @param {ClientStatus} client */
function clientCells(client) {
  const { speaks, serverSpeaks } = client;
  const since = client.presence === 'calling' ? `calling for ${ago(client.sinceMs)}` : ago(client.sinceMs);
  const [name, ...version] = clientName(client.name, client.version);
  return [
    { parts: [{ text: '', ...name, to: { client: client.name ?? UNNAMED } }, ...version] },
    { parts: speech(speaks) },
    { parts: [between(client)] },
    { parts: speech(serverSpeaks) },
    { parts: [{ text: client.server, to: { server: client.server } }] },
    textCell(since),
  ];
}

/**
 * Returns how a row names the work of the bridge for a client: translating, changing the transport, or nothing.
 *
 * @param {Pick<ClientStatus, 'speaks' | 'serverSpeaks'>} client
 */
function between({ speaks: client, serverSpeaks: server }) {
  if (server === null) return { text: 'not known yet', look: 'small' };
  if (client.era !== server.era) return { text: `translates ${client.era} → ${server.era}`, look: 'tag' };
  if (client.transport !== server.transport) return { text: 'changes the transport', look: 'tag quiet' };
  return { text: 'translates nothing', look: 'small' };
}

/** @param {StatusDocument} document */
function renderClients({ clients, moreClients }) {
  const wanted = clients.filter(({ name, server }) => isOfChosenServer(server) && isChosenClient(name));
  const few = showsAllClients ? wanted : wanted.slice(0, FEW_CLIENTS);
  fillTable('clients', few, ({ number }) => String(number), clientCells);
  const isAll = wanted.length === clients.length;
  const ofServer = chosen('client') === null ? 'Nobody is connected to this server.' : 'No client matches the filter.';
  setText(byId('no-clients'), isAll ? 'Nobody is connected.' : ofServer);
  setText(byId('clients-summary'), summaryOf(wanted));
  byId('more-clients').hidden = moreClients === 0;
  setText(
    byId('more-clients'),
    `${counted(moreClients, 'more client')} ${moreClients === 1 ? 'is' : 'are'} not listed.`,
  );
  showMore('all-clients', wanted.length, FEW_CLIENTS, showsAllClients);
}

/** @param {readonly ClientStatus[]} clients */
function summaryOf(clients) {
  if (clients.length === 0) return '';
  const count = (/** @type {string} */ begin) =>
    clients.filter((client) => between(client).text.startsWith(begin)).length;
  const counts = [
    [count('translates legacy') + count('translates modern'), 'translated between eras'],
    [count('changes'), 'moved to another transport'],
    [count('translates nothing'), 'passed on without translation'],
    [count('not known'), 'not known yet'],
  ];
  const texts = counts.flatMap(([number, what]) => (number === 0 ? [] : [`${number} ${what}`]));
  return `${counted(clients.length, 'client')}: ${texts.join(', ')}.`;
}

/**
 * @param {string} id
 * @param {number} count
 * @param {number} few
 * @param {boolean} showsAll
 */
function showMore(id, count, few, showsAll) {
  const more = byId(id);
  more.hidden = count <= few;
  more.setAttribute('aria-expanded', String(showsAll));
  setText(more, showsAll ? 'Show fewer' : `Show all ${count}`);
}

/** @param {OpenCall} call */
function callName({ method, tool }) {
  return [{ text: tool ?? method }, ...(tool === null ? [] : [{ text: ` ${method}`, look: 'small' }])];
}

/** @param {OpenCall} call */
function openCells(call) {
  return [
    { parts: callName(call) },
    { parts: clientName(call.client, call.clientVersion) },
    textCell(call.server),
    textCell(duration(Math.max(0, nowMs() - call.atMs)), 'number'),
  ];
}

const OUTCOMES = new Map([
  ['answered', { text: '● answered', look: 'quiet' }],
  ['tool-error', { text: '▲ tool failed', look: 'warn' }],
  ['error', { text: '▲ error', look: 'warn' }],
  ['cancelled', { text: '○ canceled', look: 'quiet' }],
  ['failed', { text: '✕ failed', look: 'bad' }],
]);

/** @param {EndedCall} call */
function endedCells(call) {
  const outcome = [OUTCOMES.get(call.outcome) ?? { text: call.outcome, look: '' }];
  if (call.code !== null) outcome.push({ text: ` ${call.code}`, look: 'small code' });
  return [
    textCell(timeOfDay(call.atMs), 'of-time'),
    { parts: callName(call), look: 'of-call' },
    { parts: clientName(call.client, call.clientVersion), look: 'of-client' },
    textCell(call.server, 'of-server'),
    { parts: outcome, look: 'of-outcome' },
    textCell(duration(call.durationMs), 'number of-took'),
    textCell(size(call.bytes), 'number of-size'),
  ];
}

/** @param {StatusDocument} document */
function renderRecent({ calls: { recent } }) {
  const isWrong = (/** @type {EndedCall} */ { outcome }) => outcome === 'error' || outcome === 'failed';
  const ofChosen = recent.filter(isChosenCall);
  const wanted = chosen('calls') === 'wrong' ? ofChosen.filter(isWrong) : ofChosen;
  const calls = showsAllCalls ? wanted : wanted.slice(0, FEW_CALLS);
  fillTable('recent', calls, ({ number }) => String(number), endedCells);
  setText(byId('no-calls'), recent.length === 0 ? 'No calls yet.' : 'No recent call matches the filter.');
  showMore('more-calls', wanted.length, FEW_CALLS, showsAllCalls);
}

const VERDICTS = new Map([
  ['safe', { text: '● safe to switch off', look: 'good' }],
  ['not-yet', { text: '▲ not yet', look: 'warn' }],
  ['too-early', { text: '○ too early to say', look: 'small' }],
]);

/** @param {StatusDocument} document */
function renderUsage({ usage }) {
  byId('usage-section').hidden = usage === null;
  if (usage === null) return;
  setText(byId('usage-title'), `Migration: the last ${counted(usage.days, 'day')}`);
  const ofServer = usage.verdicts.filter(({ server }) => isOfChosenServer(server));
  const verdicts = ofServer.map(({ server, transport, verdict, text }) => [
    VERDICTS.get(verdict) ?? { text: verdict, look: '' },
    { text: ` ${server}, ${TRANSPORTS.get(transport) ?? transport}: ${text}`, look: '' },
  ]);
  fillList('verdicts', verdicts);
  const keyOf = (/** @type {UsageStatusRow} */ row) =>
    JSON.stringify([row.client, row.clientVersion, row.speaks, row.server, row.serverSpeaks]);
  const rows = usage.rows.filter(({ client, server }) => isOfChosenServer(server) && isChosenClient(client));
  fillTable('usage', rows, keyOf, usageCells);
}

/** @param {UsageStatusRow} row */
function usageCells(row) {
  return [
    { parts: clientName(row.client, row.clientVersion) },
    { parts: speech(row.speaks) },
    {
      parts: [
        { text: row.server, look: 'line' },
        ...(row.serverSpeaks === null
          ? []
          : speech(row.serverSpeaks).map(({ text }) => ({ text, look: 'line small' }))),
      ],
    },
    textCell(row.deprecated.length === 0 ? '–' : row.deprecated.join(', ')),
    textCell(String(row.sessions), 'number'),
    textCell(String(row.calls), 'number'),
    textCell(String(row.errors), row.errors === 0 ? 'number' : 'number bad'),
    textCell(`${ago(row.lastSeenMs)} ago`),
  ];
}

/** @param {StatusDocument} document */
function renderSnippets({ snippets: all }) {
  const snippets = all.filter(({ server }) => isOfChosenServer(server));
  byId('snippets-section').hidden = snippets.length === 0;
  const host = fillChoices(
    'snippet-host',
    snippets.map((snippet) => snippet.host),
  );
  const ofHost = snippets.filter((snippet) => snippet.host === host);
  const server = fillChoices(
    'snippet-server',
    ofHost.map((snippet) => snippet.server),
  );
  setText(byId('snippet'), ofHost.find((snippet) => snippet.server === server)?.text ?? '');
}

/**
 * @param {string} id
 * @param {readonly string[]} values
 * @returns the one that is chosen
 */
function fillChoices(id, values) {
  const select = elementOf(id, HTMLSelectElement);
  const names = [...new Set(values)];
  const content = JSON.stringify(names);
  if (shown.get(select) !== content) {
    shown.set(select, content);
    const chosen = select.value;
    select.replaceChildren(...names.map((name) => new Option(name)));
    if (names.includes(chosen)) select.value = chosen;
  }
  return select.value;
}

/** @param {StatusDocument} document */
function tellChangedStates({ servers }) {
  const states = new Map(servers.map(({ name, state }) => [name, state]));
  const changed = servers.filter(({ name, state }) => (knownStates.get(name) ?? state) !== state);
  knownStates = states;
  if (changed.length === 0) return;
  announce(
    changed.map(({ name, state }) => `${name}: ${(STATES.get(state)?.text ?? state).replace(/^\S+ /, '')}`).join(', '),
  );
}

/** States in which a server cannot be used, the most urgent first. */
const TROUBLE = ['stopped', 'failing'];

/** @param {readonly ServerStatus[]} servers */
function troublesIn(servers) {
  return servers.filter(({ state }) => TROUBLE.includes(state)).length;
}

/** @param {StatusDocument} document */
function renderRefused({ refused: { byCode } }) {
  byId('refused-section').hidden = byCode.length === 0;
  fillTable(
    'refused',
    byCode,
    ({ code }) => code,
    ({ code, count }) => [
      code === 'connections' ? textCell('too many connections') : textCell(code, 'code'),
      textCell(String(count), 'number'),
    ],
  );
}

/**
 * Shows the servers that cannot be used before the others, and says how many they are.
 *
 * @param {StatusDocument} shown
 */
function renderServers({ servers }) {
  byId('servers-section').hidden = chosen('server') !== null || chosenServer() !== undefined;
  const urgency = (/** @type {ServerStatus} */ { state }) => TROUBLE.indexOf(state) + 1 || TROUBLE.length + 1;
  const failing = troublesIn(servers);
  fillTable(
    'servers',
    servers.toSorted((a, b) => urgency(a) - urgency(b)),
    ({ name }) => name,
    serverCells,
  );
  const problems = failing === 0 ? '' : `, ${failing} of them failing`;
  setText(byId('servers-count'), servers.length === 0 ? '' : `${counted(servers.length, 'server')}${problems}`);
  troubles = failing;
  showTitle();
}

/** @param {StatusDocument} document */
function renderAlerts({ servers }) {
  const failing = servers.filter(({ name, state }) => TROUBLE.includes(state) && name !== chosenServer()?.name);
  const items = failing.slice(0, MAX_ALERTS).map((server) => {
    const { problem, name } = server;
    const text = [
      { text: name, look: 'name', to: { server: name } },
      { text: ' ' },
      { ...stateOf(server), look: 'bad' },
    ];
    if (problem === null) return text;
    const reason = [
      { text: '', look: 'line' },
      { text: cut(problem, MAX_PROBLEM_LENGTH) },
      { copy: problem, label: `Copy the error of ${name}` },
    ];
    return [...text, ...reason];
  });
  const more = failing.length - items.length;
  fillList('alerts', more === 0 ? items : [...items, [{ text: `${counted(more, 'more server')} cannot be used.` }]]);
  byId('alerts').hidden = items.length === 0;
}

/** Shows everything about the chosen server. */
function renderServer() {
  const server = chosenServer();
  const name = chosen('server') ?? server?.name;
  byId('server-section').hidden = name === undefined;
  if (name === undefined) return;
  setText(byId('server-title'), name);
  const all = elementOf('all-servers', HTMLAnchorElement);
  all.hidden = chosen('server') === null;
  all.href = addressWith({ server: null });
  byId('server-missing').hidden = server !== undefined;
  byId('server-known').hidden = server === undefined;
  if (server !== undefined) renderFacts(server);
}

/** @param {ServerStatus} server */
function renderFacts(server) {
  const { problem, processes, restarts, sessions, openCalls, lastMinute, kind } = server;
  // After another server was chosen, its details arrive a moment later.
  const detail = current?.detail?.server === server.name ? current.detail : null;
  const started = detail?.startedAtMs ?? null;
  const startText =
    started === null ? [] : [{ text: `Latest process started: ${moment(started)}`, look: 'line small' }];
  fillParts(byId('fact-state'), [stateOf(server), ...startText]);
  const problemFact = byId('fact-problem');
  if (problemFact.parentElement !== null) problemFact.parentElement.hidden = problem === null;
  fillParts(problemFact, problem === null ? [] : [{ text: problem }, { copy: problem, label: 'Copy the error' }]);
  const addresses = urlsOf(server).flatMap((text) => [
    { text, look: 'address' },
    { copy: text, label: `Copy the address ${text}` },
    { text: '', look: 'line' },
  ]);
  fillParts(byId('fact-addresses'), [...addresses, ...noticesOf(server)]);
  fillParts(byId('fact-speaks'), speech(server.speaks));
  const ofProcesses =
    kind === 'command' ? [counted(processes, 'process', 'processes'), counted(restarts, 'restart')] : [];
  const runs = [...ofProcesses, counted(sessions, 'session'), counted(openCalls, 'open call')];
  fillParts(byId('fact-runs'), [{ text: runs.join(', ') }]);
  const errors = lastMinute.errors === 0 ? [] : [{ text: `, ${counted(lastMinute.errors, 'error')}`, look: 'bad' }];
  const median = lastMinute.p50Ms === null ? [] : [{ text: `, median ${duration(lastMinute.p50Ms)}` }];
  fillParts(byId('fact-minute'), [{ text: counted(lastMinute.calls, 'call') }, ...errors, ...median]);
  renderDetail(detail, kind);
}

/**
 * @param {ServerDetail | null} detail
 * @param {ServerStatus['kind']} kind
 */
function renderDetail(detail, kind) {
  const hasProcesses = detail !== null && kind === 'command';
  byId('restarts-part').hidden = !hasProcesses;
  byId('stderr-part').hidden = !hasProcesses;
  byId('tools-part').hidden = detail === null;
  byId('one-replica').hidden = current?.replicas === null || detail === null;
  if (detail === null) return;
  const keyed = detail.restarts.map((restart, place) => ({
    ...restart,
    key: `${restart.atMs} ${detail.restarts.length - place}`,
  }));
  fillTable(
    'restarts',
    keyed,
    ({ key }) => key,
    ({ atMs, text }) => [textCell(moment(atMs)), textCell(text, 'wide')],
  );
  const lines = detail.stderr.map(({ atMs, text }) => `${moment(atMs)} ${text}`);
  const pre = byId('stderr');
  const isAtEnd = pre.scrollTop + pre.clientHeight >= pre.scrollHeight - 8;
  setText(pre, lines.length === 0 ? 'Nothing was written yet.' : lines.join('\n'));
  if (isAtEnd) pre.scrollTop = pre.scrollHeight;
  byId('copy-stderr').hidden = lines.length === 0;
  const { tools, moreTools } = detail;
  const count = tools.length + moreTools;
  setText(byId('tools-title'), count === 0 ? 'Tools: no client has listed them yet' : `Tools (${count})`);
  const more = moreTools === 0 ? [] : [[{ text: `and ${moreTools} more` }]];
  fillList('tools', [...tools.map((tool) => [{ text: tool, to: { tool } }]), ...more]);
}

/** Says in the title of the page, which is read in a row of tabs, what is wrong. */
function showTitle() {
  const isLost = BROKEN.has(byId('connection').dataset.state ?? '');
  const trouble = isLost ? 'No connection' : troubles > 0 ? `${troubles} failing` : '';
  document.title = [trouble, chosen('server') ?? '', TITLE].filter((part) => part !== '').join(' – ');
}

/**
 * Shows which replicas the figures cover, and which replicas are missing.
 *
 * @param {StatusDocument} shown
 */
function renderReplicas({ replicas }) {
  byId('replicas').hidden = replicas === null;
  if (replicas === null) return;
  const silent = replicas.filter(({ state }) => state === 'silent');
  const missing = silent.map(({ address, problem }) => `${address} (${problem ?? ''})`).join(', ');
  const count = replicas.length - silent.length;
  const whose = ofAll()
    ? `Of ${count} replica${count === 1 ? '' : 's'}`
    : `Of the replica ${replicas[0]?.address ?? ''}`;
  setText(byId('replicas-text'), silent.length === 0 ? `${whose}.` : `${whose}, without ${missing}.`);
  const link = elementOf('replicas-link', HTMLAnchorElement);
  setText(link, ofAll() ? 'Show one replica' : 'Show all replicas');
  link.href = addressWith({ replicas: ofAll() ? null : 'all' });
}

function render() {
  if (current === undefined) return;
  byId('status').hidden = false;
  byId('token').hidden = true;
  byId('pause').hidden = false;
  renderAlerts(current);
  renderFilters(current);
  renderServer();
  renderFigures(current);
  renderReplicas(current);
  drawCharts();
  renderServers(current);
  renderClients(current);
  const open = current.calls.longestOpen.filter(isChosenCall);
  byId('open-section').hidden = open.length === 0;
  fillTable('open', open, ({ number }) => String(number), openCells);
  renderRecent(current);
  renderRefused(current);
  renderUsage(current);
  renderSnippets(current);
  tellChangedStates(current);
}

/** The style follows the system unless the attribute says otherwise. */
function showTheme() {
  const theme = localStorage.getItem(THEME_KEY) ?? 'system';
  document.documentElement.dataset.theme = theme;
  elementOf('theme', HTMLSelectElement).value = theme;
}

// --- The connection

const CONNECTION_TEXTS = {
  connecting: 'Connecting…',
  live: 'Live',
  paused: 'Paused',
  lost: 'Connection lost; trying again',
  full: 'Too many others watch; trying again',
  locked: 'A token is needed',
};

/** States in which the figures grow old although somebody wants to see new ones. */
const BROKEN = new Set(['lost', 'full']);
const TITLE = document.title;

/** @param {keyof typeof CONNECTION_TEXTS} state */
function showConnection(state) {
  const pill = byId('connection');
  if (pill.dataset.state === state) return;
  const wasBroken = BROKEN.has(pill.dataset.state ?? '');
  pill.dataset.state = state;
  document.body.dataset.connection = state;
  const banner = byId('banner');
  banner.hidden = !BROKEN.has(state) || current === undefined;
  if (!wasBroken && !banner.hidden) {
    setText(banner, `The bridge has not answered since ${timeOfDay(nowMs())}. The figures are those of that time.`);
  }
  showTitle();
  setText(byId('connection-text'), CONNECTION_TEXTS[state]);
  if (state !== 'connecting' && (state !== 'live' || wasBroken)) announce(CONNECTION_TEXTS[state]);
}

/** Follows the stream until it is paused, hidden or locked, however often it breaks. */
async function follow() {
  const { signal } = startFollowing();
  let retryMs = FIRST_RETRY_MS;
  while (!signal.aborted) {
    const end = await readStream(followed, signal, (event) => {
      takeEvent(event);
      retryMs = FIRST_RETRY_MS;
    });
    if (signal.aborted) return;
    if (end === 'locked') return askForToken();
    showConnection(end);
    await new Promise((resolve) => setTimeout(resolve, retryMs));
    retryMs = Math.min(MAX_RETRY_MS, retryMs * 2);
  }
}

function startFollowing() {
  following?.abort();
  following = new AbortController();
  followed = streamAddress();
  return following;
}

/**
 * @param {string} address
 * @param {AbortSignal} signal
 * @param {(event: string) => void} take
 * @returns {Promise<'locked' | 'full' | 'lost'>}
 */
async function readStream(address, signal, take) {
  const silence = new AbortController();
  const abort = () => silence.abort();
  signal.addEventListener('abort', abort);
  let timer = setTimeout(abort, SILENCE_MS);
  try {
    const token = sessionStorage.getItem(TOKEN_KEY);
    const headers = token === null ? {} : { Authorization: `Bearer ${token}` };
    const response = await fetch(address, {
      headers,
      signal: silence.signal,
      cache: 'no-store',
    });
    if (response.status === 401 || response.status === 403) return 'locked';
    if (response.status === 503) return 'full';
    if (!response.ok || response.body === null) return 'lost';
    const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
    let text = '';
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return 'lost';
      clearTimeout(timer);
      timer = setTimeout(abort, SILENCE_MS);
      const events = (text + value).split('\n\n');
      text = events.pop() ?? '';
      if (text.length > MAX_EVENT_LENGTH) return 'lost';
      for (const event of events) take(event);
    }
  } catch {
    return 'lost';
  } finally {
    clearTimeout(timer);
    signal.removeEventListener('abort', abort);
    abort();
  }
}

/** The stream has what the address of the page chooses of replicas and servers. Filters of clients and tools stay here. */
function streamAddress() {
  const query = new URLSearchParams();
  for (const name of ['replicas', 'server']) {
    const value = chosen(name);
    if (value !== null) query.set(name, value);
  }
  return query.size === 0 ? 'status/events' : `status/events?${query}`;
}

/** The address of the page says of which replicas it is. */
function ofAll() {
  return chosen('replicas') === 'all';
}

/**
 * The bridge writes each event as two lines: its type, and its data.
 *
 * @param {string} event
 */
function takeEvent(event) {
  const [type = '', data = ''] = event.split('\n');
  if (!type.startsWith('event: ') || !data.startsWith('data: ')) return;
  const members = JSON.parse(data.slice('data: '.length));
  if (type === 'event: status') current = members;
  else if (type === 'event: change' && current !== undefined) current = { ...current, ...members };
  else return;
  aheadMs = members.atMs - Date.now();
  showConnection('live');
  render();
}

function askForToken() {
  const hadToken = sessionStorage.getItem(TOKEN_KEY) !== null;
  sessionStorage.removeItem(TOKEN_KEY);
  current = undefined;
  byId('status').hidden = true;
  byId('token').hidden = false;
  byId('pause').hidden = true;
  byId('token-problem').textContent = hadToken ? 'This token was not accepted.' : '';
  showConnection('locked');
  const field = elementOf('token-value', HTMLInputElement);
  field.value = '';
  field.focus();
}

// --- What people do

elementOf('token-form', HTMLFormElement).addEventListener('submit', (event) => {
  event.preventDefault();
  sessionStorage.setItem(TOKEN_KEY, elementOf('token-value', HTMLInputElement).value.trim());
  void follow();
});

byId('pause').addEventListener('click', () => {
  isPaused = !isPaused;
  byId('pause').setAttribute('aria-pressed', String(isPaused));
  if (!isPaused) return void follow();
  following?.abort();
  showConnection('paused');
});

// A hidden page needs no updates.
document.addEventListener('visibilitychange', () => {
  if (isPaused || !byId('token').hidden) return;
  if (document.hidden) following?.abort();
  else void follow();
});

elementOf('theme', HTMLSelectElement).addEventListener('change', ({ target }) => {
  if (target instanceof HTMLSelectElement) localStorage.setItem(THEME_KEY, target.value);
  showTheme();
});

for (const name of FILTERS) {
  const select = elementOf(`filter-${name}`, HTMLSelectElement);
  select.addEventListener('change', () => choose({ [name]: select.value === '' ? null : select.value }));
}

byId('clear-filters').addEventListener('click', () => {
  choose(Object.fromEntries(FILTERS.map((name) => [name, null])));
  // The button is gone, and the focus with it.
  byId('filter-server').focus();
});

byId('all-servers').addEventListener('click', (event) => {
  if (event.ctrlKey || event.metaKey || event.shiftKey || event.altKey) return;
  event.preventDefault();
  choose({ server: null });
});

addEventListener('popstate', showChoice);

const onlyErrors = elementOf('only-errors', HTMLInputElement);
onlyErrors.addEventListener('change', () => choose({ calls: onlyErrors.checked ? 'wrong' : null }));
byId('all-clients').addEventListener('click', () => {
  showsAllClients = !showsAllClients;
  render();
});
byId('snippet-host').addEventListener('change', render);
byId('snippet-server').addEventListener('change', render);
byId('more-calls').addEventListener('click', () => {
  showsAllCalls = !showsAllCalls;
  render();
});

for (const [button, source] of new Map([
  ['copy', 'snippet'],
  ['copy-stderr', 'stderr'],
])) {
  byId(button).addEventListener('click', () => {
    const element = byId(source);
    void copyOrSelect(byId(button), element.textContent ?? '', element);
  });
}

/**
 * Copies a text, or selects the element that shows it where the browser lets nobody copy.
 *
 * @param {HTMLElement} button
 * @param {string} text
 * @param {Element | null} source
 */
async function copyOrSelect(button, text, source) {
  const isCopied = await copy(text);
  if (!isCopied && source !== null) getSelection()?.selectAllChildren(source);
  announce(isCopied ? 'Copied' : 'Selected; copy it with the keyboard');
  setText(button, isCopied ? 'Copied' : 'Selected');
  setTimeout(() => setText(button, 'Copy'), 2000);
}

/**
 * Only pages that came over TLS or from this machine may write to the clipboard.
 *
 * @param {string} text
 */
async function copy(text) {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    return false;
  }
}

for (const id of CHARTS) {
  const svg = document.getElementById(id);
  if (!(svg instanceof SVGElement)) continue;
  svg.addEventListener('pointermove', ({ clientX }) => pointAt(svg, clientX));
  svg.addEventListener('pointerdown', ({ clientX }) => pointAt(svg, clientX));
  svg.addEventListener('pointerleave', ({ pointerType }) => {
    // A finger that is lifted leaves its values to be read.
    if (pointerType !== 'touch') stopPointing();
  });
  svg.addEventListener('blur', stopPointing);
  svg.addEventListener('keydown', (event) => {
    if (pointByKey(id, event.key)) event.preventDefault();
  });
}

/** Another page of the bridge may have changed the theme. */
addEventListener('storage', ({ key }) => {
  if (key === THEME_KEY) showTheme();
});

addEventListener('resize', () => requestAnimationFrame(render));
setInterval(() => {
  if (!isPaused && !document.hidden) render();
}, REDRAW_MS);
showTheme();
void follow();
