import type { ExportedMetric } from './collector.ts'

// The names that Prometheus and the Collector give to OpenTelemetry's metrics and attributes, as the specification
// "Prometheus and OpenMetrics compatibility" has them.

const units: Readonly<Record<string, string>> = { s: '_seconds' }

/** The name of a label. */
export const labelOf = (attribute: string): string => attribute.replace(/\W/g, '_')

/** The names of the series of a metric, without the labels that all of them have. */
export function seriesOf({ name, unit, kind }: Pick<ExportedMetric, 'name' | 'unit' | 'kind'>): readonly string[] {
  // A unit in braces is an annotation, and is dropped.
  const base = `${labelOf(name)}${units[unit] ?? ''}`
  if (kind === 'histogram') return ['_bucket', '_sum', '_count'].map((suffix) => `${base}${suffix}`)
  return [kind === 'counter' ? `${base}_total` : base]
}

const grouping = /\bby \(([^)]*)\)/g

/** The subject of a query in PromQL: the names of the series, each with the labels that it is selected by. */
export function selectorsOf(query: string): readonly { readonly series: string; readonly labels: readonly string[] }[] {
  const withoutLabels = query.replaceAll(grouping, ' ').replace(/, \w+\)$/, ')')
  return Array.from(
    withoutLabels.matchAll(/\b((?:media_webhooks|messaging)_\w+)(?:\{([^}]*)\}|(?=[[)]))/g),
    (match) => ({
      series: match[1] as string,
      labels: Array.from((match[2] ?? '').matchAll(/(\w+)\s*(?:=~|!~|!=|=)/g), ([, label]) => label as string),
    }),
  )
}

/** The labels that a query groups by. */
export const groupedBy = (query: string): readonly string[] =>
  Array.from(query.matchAll(grouping), ([, list = '']) => list.split(',').map((label) => label.trim())).flat()
