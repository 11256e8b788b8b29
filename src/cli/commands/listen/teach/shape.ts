import type { JsonObject } from '../../../../events/json.ts'

/** The form of JSON values, without the values. */
export interface Shape {
  /** Types other than the containers below, such as `string` or `null`. */
  readonly types: readonly string[]
  /** The fields, if objects were seen. */
  readonly fields?: ReadonlyMap<string, Field>
  /** Values under names that look like data, merged into one shape. */
  readonly entries?: Shape
  /** The items, if arrays were seen. */
  readonly items?: Shape
}

interface Field extends Shape {
  /** Some object lacks the field. */
  readonly optional: boolean
}

// A value nested deeper has only its type, and an object with more names is read as a map.
const [maxDepth, maxNames] = [8, 100]

/** Merges the forms of several values. */
export function shapeOf(values: readonly unknown[], depth = maxDepth): Shape {
  const objects = depth === 0 ? [] : values.filter(isJsonObject)
  const arrays = depth === 0 ? [] : values.filter(Array.isArray)
  const others = values.filter((value) => depth === 0 || typeof value !== 'object' || value === null)
  const names = isMap(objects) ? [] : namesIn(objects).filter(isFieldName).slice(0, maxNames)
  const fields = names.map((name) => {
    const found = objects.filter((object) => Object.hasOwn(object, name)).map((object) => object[name])
    return [name, { ...shapeOf(found, depth - 1), optional: found.length < objects.length }] as const
  })
  const rest = objects.flatMap((object) => Object.entries(object).filter(([name]) => !names.includes(name)))
  return {
    types: [...new Set(others.map(typeName))],
    ...(objects.length > 0 && { fields: new Map(fields) }),
    ...(rest.length > 0 && {
      entries: shapeOf(
        rest.map(([, value]) => value),
        depth - 1,
      ),
    }),
    ...(arrays.length > 0 && { items: shapeOf(arrays.flat(), depth - 1) }),
  }
}

/** One line per value, such as `data.items[].id: string`. Names that look like data are a `*`. */
export function describeShape({ types, fields, entries, items }: Shape, path = '', optional = false): string[] {
  const own = [...types, ...(fields?.size === 0 && !entries ? ['object'] : [])]
  const inside = (name: string) => (path === '' ? name : `${path}.${name}`)
  return [
    ...(own.length > 0 ? [`${path}${optional ? '?' : ''}: ${own.join(' | ')}`] : []),
    ...[...(fields ?? [])].flatMap(([name, field]) => describeShape(field, inside(name), field.optional)),
    ...(entries ? describeShape(entries, inside('*')) : []),
    ...(items ? (isEmpty(items) ? [`${path}: array`] : describeShape(items, `${path}[]`)) : []),
  ]
}

const isEmpty = ({ types, fields, items }: Shape): boolean => types.length === 0 && !fields && !items

const isJsonObject = (value: unknown): value is JsonObject =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

const namesIn = (objects: readonly JsonObject[]): string[] => [...new Set(objects.flatMap(Object.keys))]

/** A name in code, short and with at most one number: no id, token, address or title. */
const isFieldName = (name: string): boolean =>
  /^(?=.{1,40}$)[$@_]?[a-z][a-z_-]*(\d{1,3}[a-z_-]*)?$/i.test(name) && !/^(__proto__|constructor|prototype)$/.test(name)

/** Most names look like data, or there are three or more objects with the same fields, such as `{ ana: { age }, … }`. */
function isMap(objects: readonly JsonObject[]): boolean {
  const names = namesIn(objects)
  if (names.filter((name) => !isFieldName(name)).length * 2 > names.length) return true
  const values = objects.flatMap(Object.values)
  if (names.length < 3 || !values.every(isJsonObject)) return false
  return new Set(values.map((value) => Object.keys(value).sort().join())).size === 1
}

function typeName(value: unknown): string {
  if (value === null) return 'null'
  if (Array.isArray(value)) return 'array'
  // JSON.parse reads 1e999 as infinite, which is no number for a schema.
  return value === Number.POSITIVE_INFINITY || value === Number.NEGATIVE_INFINITY ? 'unknown' : typeof value
}
