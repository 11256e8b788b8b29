import { WebhookError } from '../errors.ts'
import { isPromise } from '../internal/maybe-promise.ts'
import { isObject } from './json.ts'
import type { SchemaResult, StandardSchema } from './types.ts'

/**
 * Returns the data as its schema makes it; as it is, without a schema.
 * @throws WebhookError `malformed`, with the path of the first issue. Not in the schema's words, which may quote the value
 */
export function validate(schema: StandardSchema | undefined, data: unknown): unknown {
  if (schema === undefined) return data
  const result = resultOf(schema, data)
  if (result.issues === undefined) return result.value
  const path = result.issues[0]?.path?.map((each) => String(typeof each === 'object' ? each.key : each)) ?? []
  const field = ['data', ...path].join('.').slice(0, maxPath)
  throw new WebhookError('malformed', `field ${field}: not as its schema expects`)
}

/** A path can hold keys that the sender made up. */
const maxPath = 200

function resultOf(schema: StandardSchema, data: unknown): SchemaResult<unknown> {
  let cause: unknown = 'the schema is async'
  try {
    // A copy: arktype writes what it transforms into its input, which is stored and checked again.
    const result = schema['~standard'].validate(structuredClone(data))
    if (!isPromise(result)) return result
    // Its rejection would end the process.
    result.then(undefined, () => {})
  } catch (error) {
    cause = error
  }
  throw new WebhookError('malformed', 'field data: its schema could not check it', { cause })
}

/**
 * Refuses what is no schema, and a schema that is async: an event must be checked before its answer.
 * @throws WebhookError `invalid_option`
 */
export function checkSchema(type: string, schema: StandardSchema): void {
  const refused = (problem: string) => new WebhookError('invalid_option', `defineSender: events: ${type}: ${problem}`)
  if (typeof schema?.['~standard']?.validate !== 'function')
    throw refused('its schema must be a Standard Schema, such as z.object({ … })')
  if (isAsync(schema)) throw refused('its schema is async, and must not be')
}

function isAsync(schema: StandardSchema): boolean {
  if ((schema as { readonly async?: unknown }).async === true) return true
  try {
    const result = schema['~standard'].validate(undefined)
    if (isPromise(result)) {
      result.then(undefined, () => {})
      return true
    }
  } catch {
    // What cannot check `undefined` may well check data.
  }
  return holdsAsync(schema, new Set())
}

/** The parts of a schema of zod, or of one of its checks, that can be functions of the user. */
interface ZodPart {
  readonly _zod?: { readonly def?: unknown; readonly check?: unknown }
}

/**
 * Returns true if an async function is a part of a zod schema: a refinement runs only once the rest fits, so no probe
 * finds it.
 */
function holdsAsync(part: unknown, seen: Set<unknown>): boolean {
  if (Object.prototype.toString.call(part) === '[object AsyncFunction]') return true
  if (!isObject(part) || seen.has(part)) return false
  seen.add(part)
  const { _zod } = part as ZodPart
  const inner = _zod === undefined ? part : { def: _zod.def, check: _zod.check }
  return Object.values(inner).some((each) => holdsAsync(each, seen))
}
