import { toPrintable } from '../printable.ts';
import { type Column, Painter, type PaintOptions } from './painter.ts';
import {
  type ClientAdvice,
  type ClientKind,
  type ItemCount,
  type Offer,
  type ProbeConclusion,
  type ProbeReport,
  TRANSPORT_NAMES,
} from './report.ts';

export interface RenderOptions extends PaintOptions {
  /** Columns of the terminal. */
  readonly width: number;
}

/** What a server says of itself is shown up to this length. */
const MAX_SHOWN_LENGTH = 300;

const LOGIN = 'a login, with --login on-demand';
const TOKEN = 'a token, in MCP_PORTAGE_BEARER_TOKEN or --bearer-token-file';

/** The report for people. Ends with a newline. */
export function renderReport(report: ProbeReport, { color, width }: RenderOptions): string {
  const painter = new Painter({ color }, width);
  const { target, verdict, tookMs, problems, offers, authorization, clients, steps } = report;
  painter.line(painter.bold(toPrintable(target.name, MAX_SHOWN_LENGTH)));
  painter.line(`${paintVerdict(painter, verdict)}${painter.dim(` after ${formatMs(tookMs)}`)}`);

  if (problems.length > 0) painter.heading('Problems');
  for (const problem of problems) painter.item(painter.yellow('!'), toPrintable(problem, 4 * MAX_SHOWN_LENGTH));

  if (authorization !== undefined) {
    const { status, scheme, resourceMetadata, authorizationServers, scopes } = authorization;
    painter.heading('Authorization');
    painter.columns([
      ['required', `${status}${scheme === undefined ? '' : `, ${toPrintable(scheme, 40)}`}`],
      ['metadata', resourceMetadata === undefined ? 'none found' : toPrintable(resourceMetadata, MAX_SHOWN_LENGTH)],
      ...(authorizationServers.length > 0 ? [['servers', showList(authorizationServers)] as Column] : []),
      ...(scopes.length > 0 ? [['scopes', showList(scopes)] as Column] : []),
      ['way in', authorizationServers.length > 0 ? `${LOGIN}, or ${TOKEN}` : TOKEN],
    ]);
  }

  if (offers.length > 0) painter.heading('What it speaks');
  for (const offer of offers) renderOffer(painter, offer);

  if (clients.some(({ way }) => way !== 'none')) {
    painter.heading('Who can use it');
    painter.columns(
      clients.map((advice): Column => [CLIENT_NAMES[advice.client], describeWay(painter, advice), 'whole']),
    );
  }

  if (steps.length > 0) painter.heading('What was asked');
  painter.columns(
    steps.map(
      (step): Column => [
        `${formatMs(step.tookMs).padStart(8)}  ${step.request}`,
        painter.dim(toPrintable(step.saw, MAX_SHOWN_LENGTH)),
      ],
    ),
  );
  return painter.text;
}

function showList(names: readonly string[]): string {
  return names.map((name) => toPrintable(name, MAX_SHOWN_LENGTH)).join(', ');
}

function paintVerdict(painter: Painter, verdict: ProbeConclusion): string {
  switch (verdict) {
    case 'usable':
      return painter.green('usable');
    case 'partly-usable':
      return painter.yellow('usable, with problems');
    case 'unauthorized':
      return painter.yellow('needs authorization');
    case 'unusable':
      return painter.red('not usable');
  }
}

function renderOffer(painter: Painter, offer: Offer): void {
  const name = `${TRANSPORT_NAMES[offer.transport]}, ${offer.era}`;
  if (!offer.works) {
    const saw = toPrintable(offer.saw, MAX_SHOWN_LENGTH);
    return painter.columns([[name, `${painter.red('no')}   ${painter.dim(saw)}`]]);
  }
  const { revision, session, serverStream, serverInfo, capabilities } = offer;
  const traits = [
    revision === undefined ? undefined : `revision ${toPrintable(revision, 40)}`,
    session === 'session' ? 'with session' : session,
    serverStream === undefined ? undefined : STREAM_WORDS[serverStream],
  ];
  const facts = [
    traits.filter((trait) => trait !== undefined).join(', '),
    serverInfo === undefined ? '' : toPrintable(`${serverInfo.name} ${serverInfo.version}`, MAX_SHOWN_LENGTH),
    describeCounts(offer),
    capabilities.length === 0 ? '' : `declares ${toPrintable(capabilities.join(', '), MAX_SHOWN_LENGTH)}`,
  ].filter((fact) => fact !== '');
  painter.columns(
    facts.map(
      (fact, index): Column => (index === 0 ? [name, `${painter.green('yes')}  ${fact}`] : ['', `     ${fact}`]),
    ),
  );
}

const STREAM_WORDS: Readonly<Record<NonNullable<Offer['serverStream']>, string>> = {
  offered: 'stream by GET',
  'not-offered': 'no stream by GET',
  failing: 'stream by GET fails',
};

function describeCounts(offer: Offer): string {
  return [
    describeCount(offer.tools, 'tool'),
    describeCount(offer.resources, 'resource'),
    describeCount(offer.resourceTemplates, 'resource template'),
    describeCount(offer.prompts, 'prompt'),
  ]
    .filter((text) => text !== undefined)
    .join(', ');
}

function describeCount(count: ItemCount, name: string): string | undefined {
  switch (count.state) {
    case 'counted':
      return `${count.count}${count.isComplete ? '' : '+'} ${name}${count.count === 1 ? '' : 's'}`;
    case 'failed':
      return `${name}s: failed`;
    case 'not-asked':
      return `${name}s: not asked`;
    case 'not-declared':
      return undefined;
  }
}

const CLIENT_NAMES: Readonly<Record<ClientKind, string>> = {
  'stdio-legacy': 'stdio clients, legacy',
  'http-sse': 'HTTP+SSE clients',
  'streamable-http-legacy': 'Streamable HTTP clients, legacy',
  'streamable-http-modern': 'Streamable HTTP clients, modern',
  'stdio-modern': 'stdio clients, modern',
};

function describeWay(painter: Painter, { way, command }: ClientAdvice): string {
  switch (way) {
    case 'direct':
      return painter.green('directly');
    case 'portage':
      return `with  ${painter.bold(command ?? '')}`;
    case 'none':
      return painter.dim('no way');
  }
}

function formatMs(ms: number): string {
  return ms < 10 ? `${ms.toFixed(1)} ms` : ms < 10_000 ? `${Math.round(ms)} ms` : `${Math.round(ms / 1000)} s`;
}
