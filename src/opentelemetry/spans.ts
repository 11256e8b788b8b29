import {
  type Attributes,
  type Context,
  context,
  diag,
  isSpanContextValid,
  type Link,
  type Span,
  SpanKind,
  SpanStatusCode,
  type Tracer,
  type TracerProvider,
  trace,
} from '@opentelemetry/api'
import type { MediaEvent } from '../events/catalogue.ts'
import type { HandlingReport, RunSpan, StartedRun } from '../handlers/reports.ts'
import type { Inbox } from '../inbox/inbox.ts'
import type { TraceCarrier } from '../inbox/reading.ts'
import { isPromise } from '../internal/maybe-promise.ts'
import type { DeliveryReport } from '../receiver/hooks.ts'
import type { DeliverySpan } from '../receiver/telemetry.ts'
import { destinationOf, mediaIdOf, scope, system } from './attributes.ts'
import { fromCarrier, toCarrier } from './carrier.ts'
import { recordError } from './exceptions.ts'

interface SpansOptions {
  /** The attributes of every span of the receiver. */
  readonly own: Attributes
  readonly attributes: ((event: MediaEvent) => Attributes) | undefined
  readonly tracerProvider: TracerProvider | undefined
}

/** The span where nobody traces. */
const untraced: DeliverySpan & RunSpan = { within: (call) => call(), trace: undefined, end() {} }

const receiving = { ...system, 'messaging.operation.name': 'receive', 'messaging.operation.type': 'receive' }
const processing = { ...system, 'messaging.operation.name': 'process', 'messaging.operation.type': 'process' }

/** Makes the spans of deliveries and of the runs of handlers. */
export class Spans {
  readonly #tracer: Tracer
  readonly #receiving: Attributes
  readonly #processing: Attributes
  readonly #attributes: SpansOptions['attributes']
  /** `true` if a consumer of a queue passes the events in, whose own span is active then. */
  #hasConsumer = false

  constructor({ own, attributes, tracerProvider = trace }: SpansOptions) {
    this.#tracer = tracerProvider.getTracer(scope)
    this.#receiving = { ...receiving, ...own }
    this.#processing = { ...processing, ...own }
    this.#attributes = attributes
  }

  opened({ handleMessage }: Inbox): void {
    this.#hasConsumer = handleMessage !== undefined
  }

  /** The sender calls the receiver, within the server's span. So this one is neither of a client nor of a server. */
  startDelivery(): DeliverySpan {
    const parent = context.active()
    const options = { kind: SpanKind.INTERNAL, attributes: this.#receiving }
    const span = this.#tracer.startSpan('receive', options, parent)
    if (!isSpanContextValid(span.spanContext())) return untraced
    return new TracedDelivery(span, trace.setSpan(parent, span), (event) => ({
      ...this.#attributesOf(event),
      ...this.#receiving,
      'messaging.destination.name': destinationOf(event.type),
      'media_webhooks.media_id': mediaIdOf(event.mediaId),
    }))
  }

  startRun({ accepted: { event, trace: carrier }, handler, attempt }: StartedRun): RunSpan {
    const { parent, links } = this.#placeOf(carrier)
    const destination = destinationOf(event.type)
    const attributes = {
      ...this.#processing,
      'messaging.destination.name': destination,
      'media_webhooks.handler': handler,
      'media_webhooks.attempt': attempt,
      'media_webhooks.media_id': mediaIdOf(event.mediaId),
    }
    const options = { kind: SpanKind.CONSUMER, attributes, links }
    const span = this.#tracer.startSpan(`process ${destination}`, options, parent)
    if (!isSpanContextValid(span.spanContext())) return untraced
    // The user's attributes replace none of ours.
    if (span.isRecording()) span.setAttributes({ ...this.#attributesOf(event), ...attributes })
    return new TracedRun(span, trace.setSpan(parent, span))
  }

  /**
   * The run belongs to the delivery's trace. What is active now does not count, unless it is the span of a queue's
   * consumer: an inbox starts one event when another one has ended, so it could be anything.
   */
  #placeOf(carrier: TraceCarrier | undefined): { readonly parent: Context; readonly links: Link[] } {
    const parent = fromCarrier(carrier)
    const delivery = trace.getSpanContext(parent)
    const consumer = this.#hasConsumer ? trace.getSpanContext(context.active()) : undefined
    if (delivery === undefined) return { parent: consumer === undefined ? parent : context.active(), links: [] }
    const others = consumer === undefined || consumer.spanId === delivery.spanId ? [] : [{ context: consumer }]
    return { parent, links: [{ context: delivery }, ...others] }
  }

  #attributesOf(event: MediaEvent): Attributes {
    try {
      const attributes: unknown = this.#attributes?.(event)
      if (!isPromise(attributes)) return (attributes ?? {}) as Attributes
      // Its rejection would end the process.
      attributes.then(undefined, () => {})
      diag.warn('media-webhooks: attributes of openTelemetry returned a promise, which is ignored')
    } catch (error) {
      diag.warn('media-webhooks: attributes of openTelemetry threw', error)
    }
    return {}
  }
}

class TracedDelivery implements DeliverySpan {
  readonly #span: Span
  readonly #context: Context
  readonly #attributesOf: (event: MediaEvent) => Attributes

  constructor(span: Span, context: Context, attributesOf: (event: MediaEvent) => Attributes) {
    this.#span = span
    this.#context = context
    this.#attributesOf = attributesOf
  }

  /** Stored for a delivery that is not sampled too: its handlers are not sampled then, wherever they run. */
  get trace(): TraceCarrier | undefined {
    return toCarrier(this.#context)
  }

  within<Result>(receive: () => Result): Result {
    return context.with(this.#context, receive)
  }

  end({ outcome, status, reason, error }: DeliveryReport, event: MediaEvent | undefined): void {
    const span = this.#span
    if (span.isRecording()) {
      if (event !== undefined) {
        span.updateName(`receive ${destinationOf(event.type)}`)
        span.setAttributes(this.#attributesOf(event))
      }
      span.setAttribute('media_webhooks.outcome', outcome)
      span.setAttribute('http.response.status_code', status)
      if (error !== undefined) recordError(span, error)
      if (status !== 200) {
        span.setAttribute('error.type', outcome)
        span.setStatus({ code: SpanStatusCode.ERROR, message: reason ?? outcome })
      }
    }
    span.end()
  }
}

class TracedRun implements RunSpan {
  readonly #span: Span
  readonly #context: Context

  constructor(span: Span, context: Context) {
    this.#span = span
    this.#context = context
  }

  within<Result>(call: () => Result): Result {
    return context.with(this.#context, call)
  }

  end(report: HandlingReport): void {
    const span = this.#span
    if (span.isRecording()) {
      span.setAttribute('media_webhooks.outcome', report.outcome)
      if ('error' in report) recordError(span, report.error)
    }
    span.end()
  }
}
