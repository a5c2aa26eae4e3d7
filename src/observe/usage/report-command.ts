/** Runs `mcp-portage report`: creates its output and its exit code. */
import { BridgeError } from '../../errors.ts';
import { escapeHidden } from '../../printable.ts';
import { createMigrationReport, exitCodeOf } from './migration-report.ts';
import { renderMigrationReport } from './render-migration-report.ts';
import type { Usage } from './usage.ts';
import { codeOf, type FoundUsage, readUsage, usageFolderIn } from './usage-folder.ts';

/**
 * - `state`: the counts of all bridges that keep their state in this folder.
 * - `usage`: the counts fetched from a running bridge.
 */
export type UsageSource =
  | { readonly kind: 'state'; readonly stateDirectory: string }
  | { readonly kind: 'usage'; readonly usage: Usage };

export interface ReportRequest {
  readonly source: UsageSource;
  /** Length of the time that the report covers. */
  readonly windowMs: number;
  readonly format: 'human' | 'json';
  /** The width of the terminal that the report is written to. */
  readonly width: number;
  readonly color: boolean;
  readonly wallClock: () => number;
}

export interface ReportResult {
  /** The text for stdout, in the format that was asked for. */
  readonly report: string;
  readonly exitCode: number;
}

/** Rejects with a BridgeError if the folder cannot be read. A missing folder counts as one without usage. */
export async function runReport(request: ReportRequest): Promise<ReportResult> {
  const { source, windowMs, format, wallClock, ...look } = request;
  const nowMs = wallClock();
  const { usage, problems } = await findUsage(source, nowMs);
  const report = createMigrationReport(usage, { windowMs, nowMs, problems });
  return {
    report: format === 'json' ? renderJson(report) : renderMigrationReport(report, look),
    exitCode: exitCodeOf(report),
  };
}

async function findUsage(source: UsageSource, nowMs: number): Promise<FoundUsage> {
  if (source.kind === 'usage') return { usage: source.usage, problems: [] };
  try {
    return await readUsage(source.stateDirectory, nowMs);
  } catch (thrown) {
    const folder = usageFolderIn(source.stateDirectory);
    const text = `the usage in ${folder} cannot be read (${String(codeOf(thrown))}); run the report as the user who runs the bridge`;
    throw new BridgeError('ERR_CONFIG_OPTION', text, { cause: thrown });
  }
}

function renderJson(report: object): string {
  return `${escapeHidden(JSON.stringify(report, undefined, 2))}\n`;
}
