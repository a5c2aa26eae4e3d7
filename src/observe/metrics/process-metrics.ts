import { setImmediate as turn } from 'node:timers/promises';
import type * as Prom from 'prom-client';
import { type Family, writeLabels, writeSample } from './families.ts';

/**
 * The default metrics of a Node process: memory, processor time, event loop, garbage collection. Each is collected in
 * its own turn of the event loop, since some of them visit every open file and timer of the process.
 */
export function createProcessMetrics(prom: typeof Prom): readonly Family[] {
  const register = new prom.Registry();
  prom.collectDefaultMetrics({ register });
  return register.getMetricsAsArray().flatMap(({ name, help, type }) => {
    const metric = register.getSingleMetric(name);
    return metric === undefined ? [] : [{ name, help, type: `${type}`, series: () => takeSeries(name, metric) }];
  });
}

async function takeSeries(name: string, metric: Prom.Metric): Promise<Iterable<string>> {
  await turn();
  const { values } = await metric.get();
  return (values as readonly Sample[]).map(({ labels, value, metricName = name }) =>
    writeSample(metricName, writeLabels(labels), value),
  );
}

interface Sample {
  readonly labels: Partial<Record<string, string | number>>;
  readonly value: number;
  /** Name of the line, if the metric has several. */
  readonly metricName?: string;
}
