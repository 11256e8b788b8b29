import { metrics } from '@opentelemetry/api'
import { PrometheusExporter } from '@opentelemetry/exporter-prometheus'
import { MeterProvider } from '@opentelemetry/sdk-metrics'

const exporter = new PrometheusExporter() // http://localhost:9464/metrics
metrics.setGlobalMeterProvider(new MeterProvider({ readers: [exporter] }))
