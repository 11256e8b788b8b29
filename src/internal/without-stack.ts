/**
 * Makes an error without a stack, for errors that any sender can cause: the stack is 40 % of the CPU of a rejection in
 * process. If the limit cannot be changed, as with Node's `--frozen-intrinsics`, the error has one.
 */
export function withoutStack<Made extends Error>(make: () => Made): Made {
  const { stackTraceLimit } = Error
  try {
    Error.stackTraceLimit = 0
  } catch {
    return make()
  }
  try {
    return make()
  } finally {
    Error.stackTraceLimit = stackTraceLimit
  }
}
