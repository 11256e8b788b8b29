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
  const { meterProvider, exportMetrics } = meterTo(url)
  metrics.setGlobalMeterProvider(meterProvider)
  return {
    /** Exports every span that has ended. */
    exportSpans: () => tracerProvider.forceFlush(),
    exportMetrics,
    shutdown: () => Promise.all([tracerProvider.shutdown(), meterProvider.shutdown()]),
  }
}

/** Makes a meter provider that exports to a collector when it is told to. */
export function meterTo(url: string) {
  const exporter = new OTLPMetricExporter({ url: `${url}/v1/metrics` })
  const reader = new PeriodicExportingMetricReader({ exporter, exportIntervalMillis: never })
  const meterProvider = new MeterProvider({ readers: [reader] })
  return { meterProvider, exportMetrics: () => meterProvider.forceFlush() }
}
