import { createServer, type IncomingMessage, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { text } from 'node:stream/consumers'

type Value = string | number | boolean | undefined
export type Values = Readonly<Record<string, Value>>

/** A span as it was exported. */
export interface Exported {
  readonly name: string
  readonly kind: 'internal' | 'server' | 'client' | 'producer' | 'consumer'
  readonly traceId: string
  readonly spanId: string
  readonly parent: string | undefined
  readonly links: readonly string[]
  readonly attributes: Values
  /** The attributes of its exceptions. */
  readonly exceptions: readonly Values[]
  /** The description of its status, if that is an error. */
  readonly error: string | undefined
}

/** A point of a metric as it was exported. */
export interface Point {
  readonly attributes: Values
  /** The sum, the gauge's value or the number of values of a histogram. */
  readonly value: number
  readonly bounds: readonly number[] | undefined
}

export interface ExportedMetric {
  readonly name: string
  readonly unit: string
  readonly kind: 'counter' | 'gauge' | 'histogram'
  readonly points: readonly Point[]
}

/** A server that takes what OTLP exporters send it, as JSON. */
export class Collector {
  readonly spans: Exported[] = []
  /** The newest export of each metric. */
  readonly metrics = new Map<string, ExportedMetric>()
  /** Every body, as sent. */
  readonly bodies: string[] = []
  readonly #server: Server

  private constructor() {
    this.#server = createServer(async (request, response) => {
      this.#take(request, await text(request))
      response.setHeader('content-type', 'application/json').end('{}')
    })
  }

  static async start(): Promise<Collector> {
    const collector = new Collector()
    await new Promise<void>((resolve) => collector.#server.listen(0, '127.0.0.1', resolve))
    return collector
  }

  get url(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`
  }

  /** The spans whose name begins with a word, such as `process`. */
  named(word: string): readonly Exported[] {
    return this.spans.filter(({ name }) => name.split(' ')[0] === word)
  }

  /** The points of a metric as text, sorted. */
  points(name: string): readonly Values[] {
    const points = this.metrics.get(name)?.points ?? []
    return points.map(({ attributes }) => attributes).toSorted((a, b) => compare(JSON.stringify(a), JSON.stringify(b)))
  }

  clear(): void {
    this.spans.length = 0
    this.metrics.clear()
    this.bodies.length = 0
  }

  close(): void {
    this.#server.closeAllConnections()
    this.#server.close()
  }

  #take({ url }: IncomingMessage, body: string): void {
    this.bodies.push(body)
    const { resourceSpans = [], resourceMetrics = [] } = JSON.parse(body)
    if (url === '/v1/traces') this.spans.push(...inScopes(resourceSpans, 'scopeSpans', 'spans').map(toSpan))
    else for (const metric of inScopes(resourceMetrics, 'scopeMetrics', 'metrics').map(toMetric)) this.#add(metric)
  }

  #add(metric: ExportedMetric): void {
    this.metrics.set(metric.name, metric)
  }
}

const compare = (a: string, b: string) => (a < b ? -1 : a > b ? 1 : 0)

// biome-ignore lint/suspicious/noExplicitAny: the JSON of the protocol.
type Json = any

const inScopes = (resources: Json[], scopes: string, items: string): Json[] =>
  resources.flatMap((resource) => resource[scopes].flatMap((scope: Json) => scope[items]))

const kinds = ['internal', 'internal', 'server', 'client', 'producer', 'consumer'] as const

const toSpan = (span: Json): Exported => ({
  name: span.name,
  kind: kinds[span.kind as number] ?? 'internal',
  traceId: span.traceId,
  spanId: span.spanId,
  parent: span.parentSpanId || undefined,
  links: (span.links ?? []).map((link: Json) => link.spanId),
  attributes: toValues(span.attributes),
  exceptions: (span.events ?? [])
    .filter((event: Json) => event.name === 'exception')
    .map((event: Json) => toValues(event.attributes)),
  error: span.status?.code === 2 ? (span.status.message ?? '') : undefined,
})

const toMetric = (metric: Json): ExportedMetric => {
  const { sum, gauge, histogram } = metric
  return {
    name: metric.name,
    unit: metric.unit,
    kind: sum ? 'counter' : gauge ? 'gauge' : 'histogram',
    points: (sum ?? gauge ?? histogram).dataPoints.map((point: Json) => ({
      attributes: toValues(point.attributes),
      value: Number(point.count ?? point.asInt ?? point.asDouble),
      bounds: point.explicitBounds,
    })),
  }
}

const toValues = (attributes: Json[] = []): Values =>
  Object.fromEntries(
    attributes.map(({ key, value }) => [
      key,
      value.stringValue ??
        value.boolValue ??
        (value.intValue === undefined ? value.doubleValue : Number(value.intValue)),
    ]),
  )
