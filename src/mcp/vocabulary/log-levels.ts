/** Severities of `notifications/message`, least severe first. [spec 2025-11-25 server/utilities/logging#log-levels] */
const levels = ['debug', 'info', 'notice', 'warning', 'error', 'critical', 'alert', 'emergency'] as const;

export type LogLevel = (typeof levels)[number];

const severities: ReadonlyMap<string, number> = new Map(levels.map((level, index) => [level, index]));

export function parseLogLevel(value: unknown): LogLevel | undefined {
  return typeof value === 'string' && severities.has(value) ? (value as LogLevel) : undefined;
}

/** 0 for debug up to 7 for emergency. */
export function severityOf(level: LogLevel): number {
  return severities.get(level) ?? 0;
}
