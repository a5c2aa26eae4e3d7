/** The picture of the README: who can talk to whom. */
import { escapeXml, FONT, THEMES, type ThemeName } from './picture-themes.ts';

interface Box {
  readonly title: string;
  readonly detail: string;
}

/** In use, though the specification does not have them. */
const CARRIERS: Box = { title: 'WebSocket, sockets', detail: 'not in the specification' };

const CLIENTS: readonly Box[] = [
  { title: 'stdio', detail: 'Claude Desktop, any host' },
  { title: 'HTTP+SSE', detail: '2024-11-05' },
  { title: 'Streamable HTTP', detail: '2025-03-26 to 2025-11-25' },
  { title: 'Stateless HTTP, stdio', detail: '2026-07-28' },
  CARRIERS,
];

const SERVERS: readonly Box[] = [
  { title: 'A command', detail: 'stdio, any revision' },
  { title: 'HTTP+SSE', detail: '2024-11-05' },
  { title: 'Streamable HTTP', detail: '2025-03-26 to 2025-11-25' },
  { title: 'Stateless HTTP', detail: '2026-07-28' },
  CARRIERS,
];

const WIDTH = 760;
const BOX = { width: 200, height: 50, gap: 14 } as const;
const TOP = 44;
const CENTER = { left: 305, width: 150 } as const;
const ROWS = CLIENTS.length;
const HEIGHT = TOP + ROWS * BOX.height + (ROWS - 1) * BOX.gap + 14;

export function renderDiagram(name: ThemeName): string {
  const theme = THEMES[name];
  const yOf = (index: number): number => TOP + index * (BOX.height + BOX.gap);
  const column = (boxes: readonly Box[], x: number, heading: string): string =>
    [
      `<text x="${x + BOX.width / 2}" y="24" text-anchor="middle" font-size="14" font-weight="600" fill="${theme.faint}">${heading}</text>`,
      ...boxes.map(
        ({ title, detail }, index) =>
          `<rect x="${x}" y="${yOf(index)}" width="${BOX.width}" height="${BOX.height}" rx="6" fill="${theme.box}" stroke="${theme.line}"/>` +
          `<text x="${x + BOX.width / 2}" y="${yOf(index) + 22}" text-anchor="middle" font-size="14" font-weight="600" fill="${theme.text}">${escapeXml(title)}</text>` +
          `<text x="${x + BOX.width / 2}" y="${yOf(index) + 39}" text-anchor="middle" font-size="12" fill="${theme.faint}">${escapeXml(detail)}</text>`,
      ),
    ].join('\n');
  const middle = TOP + (HEIGHT - 14 - TOP) / 2;
  const lines = CLIENTS.flatMap((_, index) => {
    const y = yOf(index) + BOX.height / 2;
    const end = middle + (index - (ROWS - 1) / 2) * 22;
    const right = CENTER.left + CENTER.width;
    return [curve(BOX.width + 8, y, CENTER.left, end), curve(right, end, WIDTH - BOX.width - 8, y)];
  });
  return `<svg xmlns="http://www.w3.org/2000/svg" width="${WIDTH}" height="${HEIGHT}" viewBox="0 0 ${WIDTH} ${HEIGHT}" role="img" ${FONT}>
<title>Clients of stdio, HTTP+SSE, Streamable HTTP, 2026-07-28, WebSocket and sockets reach servers of all of these through mcp-portage</title>
<g fill="none" stroke="${theme.line}" stroke-width="1.5">
${lines.join('\n')}
</g>
${column(CLIENTS, 8, 'Any client')}
${column(SERVERS, WIDTH - BOX.width - 8, 'Any server')}
<rect x="${CENTER.left}" y="${middle - 56}" width="${CENTER.width}" height="112" rx="10" fill="${theme.accent}"/>
<text x="${CENTER.left + CENTER.width / 2}" y="${middle - 4}" text-anchor="middle" font-size="18" font-weight="600" fill="${theme.accentText}">mcp-portage</text>
<text x="${CENTER.left + CENTER.width / 2}" y="${middle + 18}" text-anchor="middle" font-size="12" fill="${theme.accentText}">one command, one port</text>
</svg>
`;
}

function curve(x: number, y: number, toX: number, toY: number): string {
  const bend = (x + toX) / 2;
  return `<path d="M${x} ${y}C${bend} ${y} ${bend} ${toY} ${toX} ${toY}"/>`;
}
