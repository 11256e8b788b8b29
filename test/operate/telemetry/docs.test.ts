import { readFileSync } from 'node:fs'
import { beforeAll, describe, expect, test } from 'vitest'
import { parse } from 'yaml'
import { createReceiver, urlToken } from '../../../src/index.ts'
import { openTelemetry } from '../../../src/operate/telemetry/index.ts'
import { deliver, samplePayload, signWithUrlToken } from '../../../src/testing/index.ts'
import { pageOf } from '../../docs/pages.ts'
import { silent } from '../../support/silent.ts'
import type { ExportedMetric } from './collector.ts'
import { groupedBy, labelOf, selectorsOf, seriesOf } from './prometheus.ts'
import { startTracing } from './tracing.ts'

const { collector, exported, exportMetrics } = await startTracing()
const { text } = pageOf('telemetry')

/** The rows of the table whose header begins with a cell. */
function rowsOf(header: string): readonly (readonly string[])[] {
  const [, rows = ''] = new RegExp(`^\\| ${header} \\|.*\\n\\|[-|]+\\n((?:\\|.*\\n)+)`, 'm').exec(text) ?? []
  const lines = rows.split('\n').filter((line) => line !== '')
  return lines.map((line) =>
    line
      .split('|')
      .slice(1, -1)
      .map((cell) => cell.trim()),
  )
}

const inCode = (cell = ''): readonly string[] => Array.from(cell.matchAll(/`([^`]+)`/g), ([, code]) => code as string)

/** The metrics and the attributes of spans that a receiver exports when everything has happened to it. */
async function exportEverything() {
  const secret = 'a secret'
  const telemetry = openTelemetry({ receiver: 'uploads' })
  const receiver = createReceiver({ verify: urlToken({ secret }), telemetry, retry: { attempts: 1 }, logger: silent })
  receiver.on('encoding.finished', () => {})
  receiver.on('encoding.failed', () => {
    throw new Error('broken')
  })
  const sign = signWithUrlToken({ secret })
  await deliver(receiver, samplePayload('encoding.finished'), { sign })
  await deliver(receiver, samplePayload('encoding.failed'), { sign })
  await deliver(receiver, samplePayload('encoding.failed'))
  telemetry.conflict?.({ key: 'one', type: 'encoding.finished', mediaId: 'media', fields: ['title'] })
  telemetry.measured('claim', 5, new Error('no connection'))
  await exported('process', 2)
  await exported('receive', 3)
  await exportMetrics()
  await receiver.close()
  const attributesOf = (name: string) =>
    new Set(collector.named(name).flatMap(({ attributes }) => Object.keys(attributes)))
  return {
    metrics: [...collector.metrics.values()],
    receive: attributesOf('receive'),
    process: attributesOf('process'),
  }
}

type Everything = Awaited<ReturnType<typeof exportEverything>>

let everything: Everything
const attributesOf = ({ points }: ExportedMetric) =>
  new Set(points.flatMap(({ attributes }) => Object.keys(attributes)))

beforeAll(async () => {
  everything = await exportEverything()
})

describe('docs/telemetry.md', () => {
  test('lists every metric with its type, unit and attributes, and no other', () => {
    const documented = rowsOf('Metric').map(([name, type, unit, attributes]) => ({
      name: inCode(name)[0],
      kind: type,
      unit: inCode(unit)[0],
      attributes: [...inCode(attributes), 'media_webhooks.receiver'].toSorted(),
    }))
    const actual = everything.metrics.map((metric) => ({
      name: metric.name,
      kind: metric.kind,
      unit: metric.unit,
      attributes: [...attributesOf(metric)].toSorted(),
    }))
    const byName = (a: { name: string | undefined }, b: { name: string | undefined }) =>
      `${a.name}`.localeCompare(`${b.name}`)
    expect(documented.toSorted(byName)).toEqual(actual.toSorted(byName))
  })

  test.each(['receive', 'process'] as const)('lists every attribute of a span %s, and no other', (name) => {
    const documented = rowsOf(`Attribute of \`${name}\``).flatMap(([attribute]) => inCode(attribute))
    expect(documented.toSorted()).toEqual([...everything[name]].toSorted())
  })

  test('lists every alert, and no other', () => {
    const documented = rowsOf('Alert').flatMap(([name]) => inCode(name))
    expect(documented).toEqual(rules.map(({ alert }) => alert))
  })
})

interface Rule {
  readonly alert: string
  readonly expr: string
  readonly for: string
  readonly labels: { readonly severity: string }
  readonly annotations: { readonly summary: string; readonly description: string }
}

const read = (name: string) => readFileSync(new URL(`../../../docs/${name}`, import.meta.url), 'utf8')
const rules: readonly Rule[] = parse(read('alerts.yaml')).groups.flatMap(({ rules }: { rules: Rule[] }) => rules)
const dashboard = JSON.parse(read('grafana-dashboard.json'))

interface Panel {
  readonly title: string
  readonly type: string
  readonly datasource: { readonly uid: string }
  readonly targets: readonly { readonly expr: string; readonly datasource: { readonly uid: string } }[]
  readonly gridPos: { readonly x: number; readonly y: number; readonly w: number; readonly h: number }
}
const panels: readonly Panel[] = dashboard.panels.filter(({ type }: Panel) => type !== 'row')

/** Labels that Prometheus and the exporter add to every series. */
const always = ['job', 'le']

/** The names in a query that no series has. */
function unknownIn(query: string): readonly string[] {
  const labels = new Map(
    everything.metrics.flatMap((metric) =>
      seriesOf(metric).map(
        (series) => [series, new Set([...attributesOf(metric)].map(labelOf).concat(always))] as const,
      ),
    ),
  )
  const selectors = selectorsOf(query)
  const grouped = groupedBy(query)
  return selectors.flatMap(({ series, labels: selected }) =>
    labels.has(series)
      ? [...selected, ...grouped]
          .filter((label) => !labels.get(series)?.has(label))
          .map((label) => `${series}.${label}`)
      : [series],
  )
}

describe('docs/alerts.yaml', () => {
  test.each(rules)('$alert asks for series that exist', ({ expr }) => {
    expect(selectorsOf(expr)).not.toEqual([])
    expect(unknownIn(expr)).toEqual([])
  })

  test.each(rules)('$alert waits before it fires, and says how bad it is and what to do', (rule) => {
    expect(rule.for).toMatch(/^\d+m$/)
    expect(['warning', 'critical']).toContain(rule.labels.severity)
    expect(rule.annotations.summary).not.toBe('')
    expect(rule.annotations.description).toMatch(/^[A-Z][^.]+\.$/)
  })
})

describe('docs/grafana-dashboard.json', () => {
  test('can be imported: it has an id, and asks for the data source', () => {
    expect(dashboard.uid).toBe('media-webhooks')
    expect(dashboard.id).toBeUndefined()
    const { list } = dashboard.templating
    expect(list).toContainEqual(
      expect.objectContaining({ name: 'datasource', type: 'datasource', query: 'prometheus' }),
    )
    const uids = panels.flatMap(({ datasource, targets }) => [datasource, ...targets.map((each) => each.datasource)])
    for (const { uid } of uids) expect(uid).toMatch(/^\$\{datasource\}$/)
  })

  test.each(panels)('$title asks for series that exist', ({ targets }) => {
    for (const { expr } of targets) {
      expect(selectorsOf(expr)).not.toEqual([])
      expect(unknownIn(expr)).toEqual([])
    }
  })

  test('its variables are labels that exist', () => {
    const queries = dashboard.templating.list.flatMap(({ definition }: { definition?: string }) => definition ?? [])
    expect(queries).toHaveLength(2)
    for (const query of queries) {
      expect(unknownIn(query)).toEqual([])
      const [, label] = /, (\w+)\)$/.exec(query) ?? []
      expect(['job', 'media_webhooks_receiver']).toContain(label)
    }
  })

  test('shows every metric', () => {
    const shown = new Set(
      panels.flatMap(({ targets }) => targets.flatMap(({ expr }) => selectorsOf(expr))).map((each) => each.series),
    )
    const hidden = everything.metrics.filter((metric) => !seriesOf(metric).some((series) => shown.has(series)))
    expect(hidden.map(({ name }) => name)).toEqual([])
  })

  test('no two panels overlap', () => {
    const cells = panels.flatMap(({ gridPos: { x, y, w, h } }) =>
      Array.from({ length: w * h }, (_, index) => `${x + (index % w)} ${y + Math.floor(index / w)}`),
    )
    expect(new Set(cells).size).toBe(cells.length)
  })
})
