declare module 'parse-prometheus-text-format' {
  interface ParsedMetric {
    readonly name: string;
    readonly type: string;
    readonly metrics: readonly { readonly labels?: Readonly<Record<string, string>>; readonly value: string }[];
  }
  export default function parsePrometheusTextFormat(text: string): readonly ParsedMetric[];
}
