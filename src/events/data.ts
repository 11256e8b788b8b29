import { WebhookError } from '../errors.ts'
import { isPromise } from '../internal/maybe-promise.ts'
import { copyJson } from '../internal/realm.ts'
import { isObject } from './json.ts'
import type { SchemaResult, StandardSchema } from './types.ts'

/**
 * Returns the schema's output, or the data unchanged without a schema.
 * @throws WebhookError `malformed` with the path of the first issue. The schema's own message may quote the value
 */
export function validate(schema: StandardSchema | undefined, data: unknown): unknown {
  if (schema === undefined) return data
  const result = validateData(schema, data)
  if (result.issues === undefined) return result.value
  const path = result.issues[0]?.path?.map((each) => String(typeof each === 'object' ? each.key : each)) ?? []
  const field = ['data', ...path].join('.').slice(0, maxPath)
  throw new WebhookError('malformed', `field ${field}: does not match its schema`)
}

/** Keys in a path can come from the sender. */
const maxPath = 200

function validateData(schema: StandardSchema, data: unknown): SchemaResult<unknown> {
  let cause: unknown = 'the schema returned no result'
  try {
    // Copied: arktype writes its transforms into the input, which is stored and validated again.
    const result = schema['~standard'].validate(copyJson(data))
    if (isPromise(result)) cause = whyPromise(schema, data, result)
    else if (isObject(result)) return result
  } catch (error) {
    cause = error
  }
  throw new WebhookError('malformed', 'field data: its schema failed', { cause })
}

const isAsyncSchema = 'the schema is async'

/** A zod schema also returns a promise if a function in it throws: it then tries again asynchronously. */
function whyPromise(schema: StandardSchema, data: unknown, promise: Promise<unknown>): unknown {
  // An unhandled rejection would end the process.
  promise.then(undefined, () => {})
  try {
    ;(schema as { safeParse?(data: unknown): unknown }).safeParse?.(copyJson(data))
  } catch (error) {
    if (!/synchronous parse/.test(String((error as Partial<Error> | undefined)?.message))) return error
  }
  return isAsyncSchema
}

/**
 * Rejects non-schemas and async schemas: events are validated before they are acknowledged.
 * @throws WebhookError `invalid_option`
 */
export function checkSchema(type: string, schema: StandardSchema): void {
  const refused = (problem: string) => new WebhookError('invalid_option', `defineSender: events: ${type}: ${problem}`)
  if (typeof schema?.['~standard']?.validate !== 'function')
    throw refused('its schema must be a Standard Schema, such as z.object({ … })')
  if (isAsync(schema)) throw refused('its schema must not be async')
}

function isAsync(schema: StandardSchema): boolean {
  if ((schema as { readonly async?: unknown }).async === true) return true
  try {
    const result = schema['~standard'].validate(undefined)
    if (isPromise(result) && whyPromise(schema, undefined, result) === isAsyncSchema) return true
  } catch {
    // A schema that throws for `undefined` may still validate data.
  }
  // Other libraries' schemas may hold async functions that don't validate.
  return '_zod' in schema && holdsAsync(schema, new Set())
}

/** The parts of a zod schema or check that can hold user functions. */
interface ZodPart {
  readonly _zod?: { readonly def?: unknown; readonly check?: unknown }
}

/** Searches a zod schema for async functions. Probing misses refinements, which run only on valid input. */
function holdsAsync(part: unknown, seen: Set<unknown>): boolean {
  if (Object.prototype.toString.call(part) === '[object AsyncFunction]') return true
  if (!isObject(part) || seen.has(part)) return false
  seen.add(part)
  const { _zod } = part as ZodPart
  const inner = _zod === undefined ? part : { def: _zod.def, check: _zod.check }
  return Object.values(inner).some((each) => holdsAsync(each, seen))
}
