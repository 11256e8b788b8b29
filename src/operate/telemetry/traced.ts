import { type Attributes, type Context, context, type Span, SpanStatusCode } from '@opentelemetry/api'
import type { MediaEvent } from '../../events/media-service/catalogue.ts'
import type { RunReport, RunSpan } from '../../handlers/reports.ts'
import type { TraceCarrier } from '../../inbox/reading.ts'
import type { DeliveryReport } from '../../receiver/hooks.ts'
import type { DeliverySpan } from '../../receiver/telemetry.ts'
import { toCarrier } from './carrier.ts'
import { recordError } from './exceptions.ts'

export class TracedDelivery implements DeliverySpan {
  readonly #span: Span
  readonly #context: Context
  readonly #attributesOf: (event: MediaEvent) => Attributes

  constructor(span: Span, context: Context, attributesOf: (event: MediaEvent) => Attributes) {
    this.#span = span
    this.#context = context
    this.#attributesOf = attributesOf
  }

  /** Stored even for an unsampled delivery, so that its handlers aren't sampled either, in any process. */
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
        const attributes = this.#attributesOf(event)
        span.updateName(`receive ${attributes['messaging.destination.name']}`)
        span.setAttributes(attributes)
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

export class TracedRun implements RunSpan {
  readonly #span: Span
  readonly #context: Context

  constructor(span: Span, context: Context) {
    this.#span = span
    this.#context = context
  }

  within<Result>(call: () => Result): Result {
    return context.with(this.#context, call)
  }

  end(report: RunReport): void {
    const span = this.#span
    if (span.isRecording()) {
      span.setAttribute('media_webhooks.outcome', report.outcome)
      if ('error' in report) recordError(span, report.error)
    }
    span.end()
  }
}
