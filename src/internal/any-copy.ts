/**
 * Makes `instanceof` recognise the instances of every copy of a class. A program can load this package both as ES
 * modules and as CommonJS, or contain another copy in a bundle. For a subclass, `instanceof` works as usual.
 */
export function recogniseAnyCopy(Class: { readonly prototype: object }, name: string): void {
  const brand = Symbol.for(`media-webhooks.${name}`)
  Object.assign(Class.prototype, { [brand]: true })
  Object.defineProperty(Class, Symbol.hasInstance, {
    value(this: unknown, value: unknown) {
      if (this !== Class) return Function.prototype[Symbol.hasInstance].call(this as () => void, value)
      try {
        return (value as Record<symbol, unknown> | undefined | null)?.[brand] === true
      } catch {
        // A revoked proxy, which can be thrown like any other value.
        return false
      }
    },
  })
}
