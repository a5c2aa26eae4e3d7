export const HOSTS = [
  'claude-code',
  'claude-desktop',
  'cursor',
  'vscode',
  'windsurf',
  'gemini',
  'codex',
  'opencode',
] as const;
