import type { Attributes, MeterProvider, TracerProvider } from '@opentelemetry/api'
import { WebhookError } from '../../errors.ts'
import type { MediaEvent } from '../../events/media-service/catalogue.ts'
import { aFunction, checkOptions, having, type Rules, text } from '../../internal/check-options.ts'
import type { Telemetry } from '../../receiver/telemetry.ts'
import { Destinations } from './attributes.ts'
import { Meters } from './meters.ts'
import { Spans } from './spans.ts'

/** The options of `openTelemetry`. */
export interface OpenTelemetryOptions {
  /**
   * Names the receiver if a process has several. Set as `media_webhooks.receiver` on its spans and metrics.
   * @defaultValue none
   */
  readonly receiver?: string
  /**
   * Returns extra attributes for an event's spans, such as its tenant. Called only for recorded spans. You choose them,
   * so keep out personal data that must not be in your traces. An error it throws goes to OpenTelemetry's `diag` and
   * has no other effect.
   * @defaultValue none
   */
  readonly attributes?: (event: MediaEvent) => Attributes
  /** @defaultValue the global one */
  readonly tracerProvider?: TracerProvider
  /** @defaultValue the global one */
  readonly meterProvider?: MeterProvider
}

/**
 * Traces and measures a receiver with OpenTelemetry. Uses your application's SDK, and does nothing without one.
 *
 * ```ts
 * const receiver = createReceiver({ verify, telemetry: openTelemetry() })
 * ```
 * @throws WebhookError `invalid_option`
 */
export function openTelemetry(options: OpenTelemetryOptions = {}): Telemetry {
  checkOptions('openTelemetry', options, rules)
  const { receiver, attributes, tracerProvider, meterProvider } = options
  const own = receiver === undefined ? {} : { 'media_webhooks.receiver': receiver }
  const destinations = new Destinations()
  const spans = new Spans({ own, destinations, attributes, tracerProvider })
  const meters = new Meters({ own, destinations, meterProvider })
  let isInUse = false
  return {
    opened(inbox, name, types) {
      if (isInUse) throw invalid('already used by another receiver: call openTelemetry() once per receiver')
      destinations.know(types)
      spans.opened(inbox)
      meters.opened(inbox, name)
      isInUse = true
    },
    closing: () => meters.closing(),
    startDelivery: () => spans.startDelivery(),
    startRun: (run) => spans.startRun(run),
    delivery: (report) => meters.delivery(report),
    handling: (report) => meters.handling(report),
    attempt: (report) => meters.attempt(report),
    conflict: (report) => meters.conflict(report),
    measured: (step, durationMs, error) => meters.measured(step, durationMs, error),
  }
}

const rules: Rules<OpenTelemetryOptions> = {
  receiver: text,
  attributes: aFunction,
  tracerProvider: having('an SDK TracerProvider (with getTracer)', 'getTracer'),
  meterProvider: having('an SDK MeterProvider (with getMeter)', 'getMeter'),
}

const invalid = (message: string): WebhookError => new WebhookError('invalid_option', `openTelemetry: ${message}`)
