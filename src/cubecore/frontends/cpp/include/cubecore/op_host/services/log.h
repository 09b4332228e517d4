// The log that host code writes to: warnings and errors go to standard error, the rest nowhere.
// Levels are those of page "日志级别"; the functions are as public host code calls them.
#pragma once

#include <cstdarg>
#include <cstdint>
#include <cstdio>

constexpr int DLOG_DEBUG = 0, DLOG_INFO = 1, DLOG_WARN = 2, DLOG_ERROR = 3, DLOG_EVENT = 16;
constexpr int DLOG_TYPE_DEBUG = 0, DLOG_TYPE_RUN = 1;
constexpr int OP = 63;  // the module of operators
constexpr int MSG_LENGTH = 1024;

inline int AlogCheckDebugLevel(int, int level) { return level == DLOG_WARN || level == DLOG_ERROR; }
#define CUBECORE_LOGGED                                \
  if (AlogCheckDebugLevel(0, level) == 0) return;      \
  va_list values;                                      \
  va_start(values, format);                            \
  std::vfprintf(stderr, format, values);               \
  va_end(values);                                      \
  std::fputc('\n', stderr);
inline void AlogRecord(int, int, int level, const char* format, ...) { CUBECORE_LOGGED }
// As host code declares them that has its own macros of logs.
extern "C" {
inline int32_t CheckLogLevel(int32_t, int32_t level) { return AlogCheckDebugLevel(0, level); }
inline void DlogRecord(int32_t, int32_t level, const char* format, ...) { CUBECORE_LOGGED }
}
#undef CUBECORE_LOGGED

template <typename... A>
inline void DlogSub(int module, const char*, int level, const char* format, A... values) {
  AlogRecord(module, DLOG_TYPE_DEBUG, level, format, values...);
}

// Words that builds of public repositories give their own macros of logs.
#ifndef OPS_UTILS_LOG_SUB_MOD_NAME
#define OPS_UTILS_LOG_SUB_MOD_NAME "OP"
#endif
#ifndef OPS_UTILS_LOG_PACKAGE_TYPE
#define OPS_UTILS_LOG_PACKAGE_TYPE "OP"
#endif

// The sentence is in the log already.
#define REPORT_INNER_ERR_MSG(...) \
  do {                            \
  } while (false)
#define REPORT_INNER_ERROR(...) REPORT_INNER_ERR_MSG(__VA_ARGS__)
#define REPORT_PREDEFINED_ERR_MSG(...) REPORT_INNER_ERR_MSG(__VA_ARGS__)
#define REPORT_CALL_ERROR(...) REPORT_INNER_ERR_MSG(__VA_ARGS__)
