/** `fileReceived` as the wire has it: `file_received`. */
export const toSnakeCase = (name: string): string => name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`)

/** `file_received` as the results have it: `fileReceived`. */
export const toCamelCase = (name: string): string => name.replace(/_([a-z\d])/g, (_, letter) => letter.toUpperCase())

/** The same value; an object's fields under other names. */
export function renamed(value: unknown, rename: (name: string) => string): unknown {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return value
  return Object.fromEntries(Object.entries(value).map(([name, field]) => [rename(name), field]))
}
