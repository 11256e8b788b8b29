import { metrics } from '@opentelemetry/api'
import { OTLPMetricExporter } from '@opentelemetry/exporter-metrics-otlp-http'
import { OTLPTraceExporter } from '@opentelemetry/exporter-trace-otlp-http'
import { MeterProvider, PeriodicExportingMetricReader } from '@opentelemetry/sdk-metrics'
import { BatchSpanProcessor, NodeTracerProvider, type Sampler } from '@opentelemetry/sdk-trace-node'

const never = 2_147_483_647

/** The SDK as an application starts it: global, with the W3C propagators, and exporters to a collector. */
export function startSdk(url: string, sampler?: Sampler) {
  const exporter = new OTLPTraceExporter({ url: `${url}/v1/traces` })
  const spanProcessors = [new BatchSpanProcessor(exporter)]
  const tracerProvider = new NodeTracerProvider({ spanProcessors, ...(sampler && { sampler }) })
  tracerProvider.register()
  const reader = new PeriodicExportingMetricReader({
    exporter: new OTLPMetricExporter({ url: `${url}/v1/metrics` }),
    exportIntervalMillis: never,
  })
  const meterProvider = new MeterProvider({ readers: [reader] })
  metrics.setGlobalMeterProvider(meterProvider)
  return {
    tracerProvider,
    meterProvider,
    /** Exports every span that has ended. */
    exportSpans: () => tracerProvider.forceFlush(),
    exportMetrics: () => meterProvider.forceFlush(),
    shutdown: () => Promise.all([tracerProvider.shutdown(), meterProvider.shutdown()]),
  }
}
