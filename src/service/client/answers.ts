import * as z from 'zod'
import { renamed, toCamelCase } from './naming.ts'

// A tolerant reader: a field that is absent, null or of the wrong type becomes undefined; unknown fields are kept. An
// answer is bad only without a field the caller can't do without, such as the secret of a new key.

/** The answer to a call that returns no data. */
export interface Done {
  /** The service's word for the result. `success` if it sends none. */
  readonly status: string
  /** The service's own words. */
  readonly message?: string | undefined
}

const optional = <Schema extends z.ZodType>(schema: Schema) =>
  schema
    .nullish()
    .transform((value) => value ?? undefined)
    .catch(undefined)

export const text = optional(z.string())

export const flag = optional(z.boolean())

/** A field that must be there, or the answer is bad. */
export const requiredText = z.string().min(1)

/** A whole number. Observed: the service sends some as text. */
export const wholeNumber = optional(z.union([z.int(), z.string().regex(/^\d+$/).transform(Number)]))

/** An object: snake_case fields on the wire, camelCase in the result. */
export const record = <Shape extends z.ZodRawShape>(shape: Shape) =>
  z.preprocess((value) => renamed(value, toCamelCase), z.looseObject(shape))

/** A list. Go encodes an empty one as `null`. */
export const list = <Item extends z.ZodType>(item: Item) =>
  z
    .array(item)
    .nullable()
    .transform((items) => items ?? [])

const status = text.transform((value) => value ?? 'success')

/** An answer with data: `{ status, data }`. */
export const answerWith = <Shape extends z.ZodRawShape>(shape: Shape) => record({ status, data: record(shape) })

/** An answer without data: `{ status, message }`, or no body at all. */
export const done = record({ status, message: text })

/** An answer without data whose status is required. */
export const confirmed = record({ status: z.string(), message: text })
