// Short ways to look keys up in maps.
#ifndef TENSORFLOW_CORE_LIB_GTL_MAP_UTIL_H_
#define TENSORFLOW_CORE_LIB_GTL_MAP_UTIL_H_

#include <utility>

namespace tensorflow {
namespace gtl {

// A pointer to the value, or null.
template <typename Map>
const typename Map::mapped_type* FindOrNull(const Map& map, const typename Map::key_type& key) {
  auto found = map.find(key);
  return found == map.end() ? nullptr : &found->second;
}
template <typename Map>
typename Map::mapped_type* FindOrNull(Map& map, const typename Map::key_type& key) {
  auto found = map.find(key);
  return found == map.end() ? nullptr : &found->second;
}
// The value, which is a pointer, or null.
template <typename Map>
typename Map::mapped_type FindPtrOrNull(const Map& map, const typename Map::key_type& key) {
  auto found = map.find(key);
  return found == map.end() ? typename Map::mapped_type{} : found->second;
}
template <typename Map>
const typename Map::mapped_type& FindWithDefault(const Map& map, const typename Map::key_type& key,
                                                 const typename Map::mapped_type& otherwise) {
  auto found = map.find(key);
  return found == map.end() ? otherwise : found->second;
}
// True if the key was not there.
template <typename Map>
bool InsertIfNotPresent(Map* map, const typename Map::key_type& key,
                        const typename Map::mapped_type& value) {
  return map->insert({key, value}).second;
}
template <typename Map>
bool InsertOrUpdate(Map* map, const typename Map::key_type& key,
                    const typename Map::mapped_type& value) {
  auto inserted = map->insert({key, value});
  if (!inserted.second) inserted.first->second = value;
  return inserted.second;
}
template <typename Map>
typename Map::mapped_type& LookupOrInsert(Map* map, const typename Map::key_type& key,
                                          const typename Map::mapped_type& value) {
  return map->insert({key, value}).first->second;
}

}  // namespace gtl
}  // namespace tensorflow

#endif  // TENSORFLOW_CORE_LIB_GTL_MAP_UTIL_H_
