/** The picture of the README: who can talk to whom. It is as narrow as a telephone, so that its words are read there as well. */
import { escapeXml, FONT, THEMES, type Theme, type ThemeName } from './picture-themes.ts';

interface Era {
  readonly title: string;
  readonly revisions: string;
  readonly transports: readonly string[];
}

const LEGACY: Era = {
  title: 'Legacy',
  revisions: 'up to 2025-11-25',
  transports: ['stdio', 'HTTP+SSE', 'Streamable HTTP', 'WebSocket, gRPC', 'MQTT, sockets'],
};
const MODERN: Era = {
  title: 'Modern',
  revisions: '2026-07-28',
  transports: ['stdio', 'Streamable HTTP', 'WebSocket, gRPC', 'MQTT, sockets'],
};

const TITLE =
  'Legacy and modern clients reach legacy and modern servers through mcp-portage, over stdio, HTTP+SSE, Streamable HTTP, WebSocket, gRPC, MQTT and sockets. Messages between the eras are translated.';

const WIDTH = 420;
/** Pages show the picture larger than it is drawn where they have room. */
const SHOWN = 560;
const TOP = 32;
const BOX = { width: 138, height: 141, gap: 20 } as const;
const FRAME = { left: 156, width: 108, header: 30 } as const;
const BOTTOM = TOP + 2 * BOX.height + BOX.gap;
const HEIGHT = BOTTOM + 4;
const MIDDLE = WIDTH / 2;
const LABEL = { width: 90, height: 22 } as const;

/** Where the lines of an era leave its boxes: the one to its own era outside, the one to the other era inside. */
const SPREAD = 11;
const LEGACY_Y = TOP + BOX.height / 2;
const MODERN_Y = BOTTOM - BOX.height / 2;

export function renderDiagram(name: ThemeName): string {
  const theme = THEMES[name];
  const right = WIDTH - 4 - BOX.width;
  const sides = [
    { heading: 'Any client', x: 4 },
    { heading: 'Any server', x: right },
  ];
  const crossing = (from: number, to: number): string =>
    `<path d="M${4 + BOX.width} ${from}C${MIDDLE - 10} ${from} ${MIDDLE + 10} ${to} ${right} ${to}"/>`;
  const straight = (y: number): string => `<path d="M${4 + BOX.width} ${y}H${right}"/>`;
  const label = (y: number, text: string): string => centered(MIDDLE, y, text, 12, theme.faint);
  const translatedY = (LEGACY_Y + MODERN_Y) / 2;

  return `<svg xmlns="http://www.w3.org/2000/svg" width="${SHOWN}" height="${Math.round((HEIGHT * SHOWN) / WIDTH)}" viewBox="0 0 ${WIDTH} ${HEIGHT}" role="img" ${FONT}>
<title>${TITLE}</title>
<rect x="${FRAME.left}" y="${TOP}" width="${FRAME.width}" height="${BOTTOM - TOP}" rx="8" fill="${theme.box}" stroke="${theme.accent}"/>
<path d="M${FRAME.left} ${TOP + FRAME.header}V${TOP + 8}q0 -8 8 -8H${FRAME.left + FRAME.width - 8}q8 0 8 8V${TOP + FRAME.header}z" fill="${theme.accent}"/>
${centered(MIDDLE, TOP + 20, 'mcp-portage', 14, theme.accentText, 'bold')}
<g fill="none" stroke="${theme.line}" stroke-width="1.5">
${straight(LEGACY_Y - SPREAD)}
${straight(MODERN_Y + SPREAD)}
</g>
<g fill="none" stroke="${theme.second}" stroke-width="2.5">
${crossing(LEGACY_Y + SPREAD, MODERN_Y - SPREAD)}
${crossing(MODERN_Y - SPREAD, LEGACY_Y + SPREAD)}
</g>
<rect x="${MIDDLE - LABEL.width / 2}" y="${translatedY - LABEL.height / 2}" width="${LABEL.width}" height="${LABEL.height}" rx="${LABEL.height / 2}" fill="${theme.second}"/>
${centered(MIDDLE, translatedY + 4.5, 'translated', 13, theme.secondText, 'bold')}
${label(LEGACY_Y - SPREAD - 5, 'passes')}
${label(MODERN_Y + SPREAD - 5, 'passes')}
${label(BOTTOM - 27, 'one command,')}
${label(BOTTOM - 12, 'one port')}
${sides
  .flatMap(({ heading, x }) => [
    centered(x + BOX.width / 2, 20, heading, 14, theme.faint, 'bold'),
    box(LEGACY, x, TOP, theme),
    box(MODERN, x, BOTTOM - BOX.height, theme),
  ])
  .join('\n')}
</svg>
`;
}

function box({ title, revisions, transports }: Era, x: number, y: number, theme: Theme): string {
  const center = x + BOX.width / 2;
  return [
    `<rect x="${x}" y="${y}" width="${BOX.width}" height="${BOX.height}" rx="6" fill="${theme.box}" stroke="${theme.line}"/>`,
    centered(center, y + 21, title, 14, theme.text, 'bold'),
    centered(center, y + 38, revisions, 12, theme.faint),
    ...transports.map((transport, index) => centered(center, y + 60 + index * 17, transport, 13, theme.text)),
  ].join('\n');
}

function centered(x: number, y: number, text: string, size: number, color: string, weight?: 'bold'): string {
  const bold = weight === undefined ? '' : ' font-weight="600"';
  return `<text x="${x}" y="${y}" text-anchor="middle" font-size="${size}"${bold} fill="${color}">${escapeXml(text)}</text>`;
}
