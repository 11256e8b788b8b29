// The entry of OpenTelemetry: traces and metrics of a receiver, through the SDK that the application has.

export { type OpenTelemetryOptions, openTelemetry } from './telemetry.ts'
