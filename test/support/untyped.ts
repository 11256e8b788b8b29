/** Passes a value that its types forbid, as a caller in JavaScript can: for tests of wrong input. */
export const untyped = (value: unknown): never => value as never

/** Makes a value that throws on every use, even by `instanceof`. */
export function revokedProxy(): never {
  const { proxy, revoke } = Proxy.revocable({}, {})
  revoke()
  return proxy as never
}
