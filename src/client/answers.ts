import * as z from 'zod'
import { renamed, toCamelCase } from './naming.ts'

// A tolerant reader: what is absent, null or of a type that nobody expected is undefined, and unknown fields stay
// reachable. An answer is rejected only where nothing could be done with it: the secret of a new key comes but once.

const maybe = <Schema extends z.ZodType>(schema: Schema) =>
  schema
    .nullish()
    .transform((value) => value ?? undefined)
    .catch(undefined)

export const text = maybe(z.string())

export const flag = maybe(z.boolean())

/** Without it nothing could be done with the answer. */
export const needed = z.string().min(1)

/** Numbers that the service was seen to write as a text. */
export const wholeNumber = maybe(z.union([z.int(), z.string().regex(/^\d+$/).transform(Number)]))

/** An object whose fields come in snake_case. */
export const record = <Shape extends z.ZodRawShape>(shape: Shape) =>
  z.preprocess((value) => renamed(value, toCamelCase), z.looseObject(shape))

/** A list; null where it is empty, as encoders like to write it. */
export const list = <Item extends z.ZodType>(item: Item) =>
  z
    .array(item)
    .nullable()
    .transform((items) => items ?? [])

const status = text.transform((value) => value ?? 'success')

/** `{ status, data }` */
export const answerWith = <Shape extends z.ZodRawShape>(shape: Shape) => record({ status, data: record(shape) })

/** `{ status, message }`, which may be left out altogether. */
export const done = record({ status, message: text })

/** The same, said in so many words. */
export const saidSo = record({ status: z.string(), message: text })

/** What the service answers when there is nothing to return. */
export interface Done {
  readonly status: string
  readonly message?: string | undefined
}
