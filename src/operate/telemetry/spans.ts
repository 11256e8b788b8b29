import {
  type Attributes,
  type Context,
  context,
  diag,
  isSpanContextValid,
  type Link,
  ProxyTracerProvider,
  SpanKind,
  type Tracer,
  type TracerProvider,
  trace,
} from '@opentelemetry/api'
import type { MediaEvent } from '../../events/media-service/catalogue.ts'
import type { RunSpan, StartedRun } from '../../handlers/reports.ts'
import type { Inbox } from '../../inbox/inbox.ts'
import type { TraceCarrier } from '../../inbox/reading.ts'
import { isPromise } from '../../internal/maybe-promise.ts'
import type { DeliverySpan } from '../../receiver/telemetry.ts'
import { type Destinations, scope, shortenMediaId, system } from './attributes.ts'
import { fromCarrier } from './carrier.ts'
import { TracedDelivery, TracedRun } from './traced.ts'

interface SpansOptions {
  /** Attributes set on every span. */
  readonly own: Attributes
  readonly destinations: Destinations
  readonly attributes: ((event: MediaEvent) => Attributes) | undefined
  readonly tracerProvider: TracerProvider | undefined
}

/** A no-op span. */
const untraced: DeliverySpan & RunSpan = { within: (call) => call(), trace: undefined, end() {} }

const receiving = { ...system, 'messaging.operation.name': 'receive', 'messaging.operation.type': 'receive' }
const processing = { ...system, 'messaging.operation.name': 'process', 'messaging.operation.type': 'process' }

export class Spans {
  readonly #provider: TracerProvider | undefined
  #cachedTracer: Tracer | undefined
  readonly #receiving: Attributes
  readonly #processing: Attributes
  readonly #attributes: SpansOptions['attributes']
  readonly #destinations: Destinations
  /** `true` if a queue's consumer passes the events in. Its own span is then active. */
  #hasConsumer = false

  constructor({ own, destinations, attributes, tracerProvider }: SpansOptions) {
    this.#destinations = destinations
    this.#provider = tracerProvider
    this.#receiving = { ...receiving, ...own }
    this.#processing = { ...processing, ...own }
    this.#attributes = attributes
  }

  opened({ handleMessage }: Inbox): void {
    this.#hasConsumer = handleMessage !== undefined
  }

  /** Returns the SDK's tracer; `undefined` until an SDK is registered. */
  #tracer(): Tracer | undefined {
    if (this.#cachedTracer !== undefined) return this.#cachedTracer
    const provider = this.#provider ?? trace.getTracerProvider()
    // The global provider is a proxy for the SDK's, which may start later.
    this.#cachedTracer =
      provider instanceof ProxyTracerProvider ? provider.getDelegateTracer(scope) : provider.getTracer(scope)
    return this.#cachedTracer
  }

  /** INTERNAL, neither CLIENT nor SERVER: the sender's call is already in the server's span. */
  startDelivery(): DeliverySpan {
    const tracer = this.#tracer()
    if (tracer === undefined) return untraced
    const parent = context.active()
    const options = { kind: SpanKind.INTERNAL, attributes: this.#receiving }
    const span = tracer.startSpan('receive', options, parent)
    if (!isSpanContextValid(span.spanContext())) return untraced
    return new TracedDelivery(span, trace.setSpan(parent, span), (event) => ({
      ...this.#readAttributes(event),
      ...this.#receiving,
      'messaging.destination.name': this.#destinations.of(event.type),
      'media_webhooks.media_id': shortenMediaId(event.mediaId),
    }))
  }

  startRun({ accepted: { event, trace: carrier }, handler, attempt }: StartedRun): RunSpan {
    const tracer = this.#tracer()
    if (tracer === undefined) return untraced
    const { parent, links } = this.#findParent(carrier)
    const destination = this.#destinations.of(event.type)
    const attributes = {
      ...this.#processing,
      'messaging.destination.name': destination,
      'media_webhooks.handler': handler,
      'media_webhooks.attempt': attempt,
      'media_webhooks.media_id': shortenMediaId(event.mediaId),
    }
    const options = { kind: SpanKind.CONSUMER, attributes, links }
    const span = tracer.startSpan(`process ${destination}`, options, parent)
    if (!isSpanContextValid(span.spanContext())) return untraced
    // The user's attributes must not replace ours.
    if (this.#attributes !== undefined && span.isRecording())
      span.setAttributes({ ...this.#readAttributes(event), ...attributes })
    return new TracedRun(span, trace.setSpan(parent, span))
  }

  /**
   * A run belongs to its delivery's trace. Ignores the active span, unless it is a queue consumer's: the inbox starts
   * an event when another one ends, so the active span could be any.
   */
  #findParent(carrier: TraceCarrier | undefined): { readonly parent: Context; readonly links: Link[] } {
    const parent = fromCarrier(carrier)
    const delivery = trace.getSpanContext(parent)
    const consumer = this.#hasConsumer ? trace.getSpanContext(context.active()) : undefined
    if (delivery === undefined) return { parent: consumer === undefined ? parent : context.active(), links: [] }
    const others = consumer === undefined || consumer.spanId === delivery.spanId ? [] : [{ context: consumer }]
    return { parent, links: [{ context: delivery }, ...others] }
  }

  #readAttributes(event: MediaEvent): Attributes {
    try {
      const attributes: unknown = this.#attributes?.(event)
      // Copied here, because a getter may throw.
      if (!isPromise(attributes)) return { ...(attributes as Attributes | undefined) }
      // An unhandled rejection would end the process.
      attributes.then(undefined, () => {})
      diag.warn('media-webhooks: attributes of openTelemetry returned a promise, which is ignored')
    } catch (error) {
      diag.warn('media-webhooks: attributes of openTelemetry threw', error)
    }
    return {}
  }
}
