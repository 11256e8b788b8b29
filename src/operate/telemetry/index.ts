// The OpenTelemetry entry: traces and metrics of a receiver, through the application's SDK.

export { type OpenTelemetryOptions, openTelemetry } from './telemetry.ts'
