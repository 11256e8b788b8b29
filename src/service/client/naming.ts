export const toSnakeCase = (name: string): string => name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`)

export const toCamelCase = (name: string): string => name.replace(/_([a-z\d])/g, (_, letter) => letter.toUpperCase())

/** Renames the fields of an object, one level deep. Returns any other value unchanged. */
export function renamed(value: unknown, rename: (name: string) => string): unknown {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return value
  return Object.fromEntries(Object.entries(value).map(([name, field]) => [rename(name), field]))
}
